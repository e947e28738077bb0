"""All rules on a Dockerfile or Containerfile."""

from __future__ import annotations

from torchdeck.machine.files.docker_image import judge_arguments, judge_driver_gate, judge_image
from torchdeck.machine.files.docker_torch import judge_torch
from torchdeck.machine.files.docker_view import views
from torchdeck.machine.files.dockerfile import parse_dockerfile
from torchdeck.machine.files.hit import Hit


def judge_dockerfile(text: str) -> list[Hit]:
    """Judge every stage; the rules on what an image weighs and lacks only those that no other one is built from."""
    file = parse_dockerfile(text)
    hits = judge_arguments(file)
    for view in views(file):
        hits += [*judge_torch(view), *judge_image(view)]
        # The finding on CUDA that is there twice names the driver as well.
        if view.shipped and not any(finding.rule == "cuda-installed-twice" for _, finding in hits):
            hits += judge_driver_gate(view)
    return hits
