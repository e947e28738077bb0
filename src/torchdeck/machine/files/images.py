"""What the name of a base image says: who makes it, its CUDA, its Python, whether it has a compiler and torch.

It knows names and tags as their makers document them. It does not look into an image, and of an image that it does
not know it says nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# The distribution's own Python (package python3), as packages lists of Debian and Ubuntu name it.
_DISTRIBUTION_PYTHON = {
    "ubuntu20.04": "3.8",
    "ubuntu22.04": "3.10",
    "ubuntu24.04": "3.12",
    "debian11": "3.9",
    "debian12": "3.11",
    "debian13": "3.13",
}
_CODENAMES = {"focal": "20.04", "jammy": "22.04", "noble": "24.04", "bullseye": "11", "bookworm": "12", "trixie": "13"}
_REFERENCE = re.compile(
    r"(?P<name>[a-z0-9._/-]+(?::\d+/[a-z0-9._/-]+)?)(?::(?P<tag>[\w.-]+))?(?:@(?P<digest>sha256:[0-9a-f]+))?", re.I
)


@dataclass(frozen=True)
class Image:
    """An image reference.

    Args:
        name: Without registry host of Docker Hub, tag and digest.
        tag: Empty if there is none. So ``digest``.
        maker: ``cuda``, ``pytorch``, ``nvidia`` (NVIDIA's own builds of frameworks), ``python``, ``distribution``,
            ``conda``, or empty.
        cuda: The CUDA release that the tag names; empty if it names none.
        python: The Python that the image runs; empty if that is not known.
        compiler: Whether it has a C compiler; None if that is not known.
    """

    name: str
    tag: str = ""
    digest: str = ""
    maker: str = ""
    cuda: str = ""
    python: str = ""
    compiler: bool | None = None

    @property
    def has_torch(self) -> bool:
        """Whether torch is in it."""
        return self.maker == "pytorch" or (self.maker == "nvidia" and self.name.endswith("/pytorch"))

    @property
    def musl(self) -> bool:
        """Whether it is built on musl, for which torch has no wheels."""
        return self.name in ("alpine", "library/alpine") or (self.maker == "python" and "alpine" in self.tag)

    @property
    def flavour(self) -> str:
        """``base``, ``runtime`` or ``devel``; empty if the tag says none."""
        match = re.search(r"(?:^|-)(base|runtime|devel)(?:-|$)", self.tag)
        return match[1] if match else ""


def read_image(reference: str) -> Image | None:
    """Return what a reference says; None for ``scratch``, and for one with an unresolved variable."""
    match = _REFERENCE.fullmatch(reference.strip()[:300])
    if match is None or match["name"] == "scratch":
        return None
    name = re.sub(r"^(docker\.io/|index\.docker\.io/|registry-1\.docker\.io/)?(library/)?", "", match["name"].lower())
    tag, digest = match["tag"] or "", match["digest"] or ""
    return _describe(name, tag, digest)


def looks_gpu(reference: str) -> bool:
    """Whether an image is made for NVIDIA GPUs, by its name or tag."""
    image = read_image(reference)
    text = reference.lower()
    if image is None:
        return bool(re.search(r"(nvidia/cuda|pytorch/pytorch|nvcr\.io/nvidia/)", text)) and "cpu" not in text
    if re.search(r"(^|[-_.])(cpu|rocm|xpu)([-_.\d]|$)", image.tag):
        return False
    if image.maker in ("cuda", "nvidia"):
        return True
    if image.maker == "pytorch":
        return bool(image.cuda) or image.tag in ("", "latest")
    return bool(re.search(r"(^|[-_.])(cuda[\d.]*|cu1[1-3]\d|gpu|nvidia)([-_.]|$)", image.tag)) or name_is_gpu(
        image.name
    )


def name_is_gpu(name: str) -> bool:
    """Whether an image's name alone says that it computes on NVIDIA GPUs."""
    return name in ("vllm/vllm-openai", "lmsysorg/sglang") or name.endswith(("tritonserver", "-cuda", "-gpu"))


def looks_torch(reference: str) -> bool:
    """Whether an image is one of torch, by its name."""
    return bool(re.search(r"(^|[/_-])(py)?torch|vllm/vllm-openai|lmsysorg/sglang", reference.lower().split("@")[0]))


def _describe(name: str, tag: str, digest: str) -> Image:
    if name in ("nvidia/cuda", "nvcr.io/nvidia/cuda"):
        cuda = re.match(r"(\d+\.\d+)", tag)
        maker, python, compiler = "cuda", _distribution_python(tag), "devel" in tag or (False if tag else None)
        return Image(name, tag, digest, maker, cuda[1] if cuda else "", python, compiler)
    if name == "pytorch/pytorch":
        cuda = re.search(r"cuda(\d+\.\d+)", tag)
        # Its Dockerfile puts gcc, without g++, into some runtime images and not into others.
        compiler = True if "devel" in tag else None
        return Image(name, tag, digest, "pytorch", cuda[1] if cuda else "", "", compiler)
    if name.startswith("nvcr.io/nvidia/"):
        return Image(name, tag, digest, "nvidia", compiler=True)
    if name == "python":
        version = re.match(r"(3\.\d+)", tag)
        compiler = not re.search(r"slim|alpine", tag)
        return Image(name, tag, digest, "python", "", version[1] if version else "", compiler)
    if name in ("ubuntu", "debian"):
        python = _distribution_python(_numbered(name, tag))
        return Image(name, tag, digest, "distribution", "", python, compiler=False)
    if name.startswith(("continuumio/", "condaforge/", "mambaorg/")):
        return Image(name, tag, digest, "conda")
    uv = re.match(r"python(3\.\d+)(-\w+)?", tag) if name == "ghcr.io/astral-sh/uv" else None
    if uv:
        slim = bool(re.search(r"slim|alpine", tag))
        return Image(name, tag, digest, "python", "", uv[1], compiler=not slim)
    return Image(name, tag, digest)


def _numbered(name: str, tag: str) -> str:
    first = tag.split("-", maxsplit=1)[0]
    return name + _CODENAMES.get(first, first.split(".")[0] if name == "debian" else first)


def _distribution_python(text: str) -> str:
    return next((python for key, python in _DISTRIBUTION_PYTHON.items() if text.endswith(key)), "")
