"""Rules on devcontainer.json: the GPU request and shared memory.

It knows the file itself; a compose file or Dockerfile that it names is to be judged beside it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from torchdeck.errors import UsageError
from torchdeck.machine.files.container import no_gpu, small_shm, trains
from torchdeck.machine.files.docker_image import capabilities_hits
from torchdeck.machine.files.hit import Hit
from torchdeck.machine.files.images import looks_gpu, looks_torch
from torchdeck.machine.files.lab import empty_token, token_hit

# A part without its end takes all of the rest, so that the work grows with the text and not faster.
_COMMENT = re.compile(r"\"(?:[^\"\\]|\\.)*\"?|//[^\n]*|/\*(?:.*?\*/|.*)", re.S)
_COMMA = re.compile(r"\"(?:[^\"\\]|\\.)*\"?|,(?=\s*[}\]])", re.S)
_GPU_MEND = ('"hostRequirements": {"gpu": "optional"}', '"runArgs": ["--gpus", "all"]')
_SHM_MEND = ('"runArgs": ["--shm-size=8g"]', '"runArgs": ["--ipc=host"]')


def read_jsonc(text: str) -> tuple[Any, str]:
    """Return a document of JSON with comments and trailing commas, and its text with those blanked out.

    Raises:
        UsageError: It is none.
    """
    bare = _COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else re.sub(r"[^\n]", " ", m[0]), text)
    bare = _COMMA.sub(lambda m: m[0] if m[0][0] == '"' else " ", bare)
    try:
        return json.loads(bare), bare
    except json.JSONDecodeError as error:
        raise UsageError("it is not valid JSON", found=f"line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise UsageError("it is not valid JSON", found=str(error)) from None
    except RecursionError:
        raise UsageError("it is not valid JSON", found="nested too deeply") from None


def judge_devcontainer(text: str) -> list[Hit]:
    """Judge a devcontainer.json.

    Raises:
        UsageError: It is not JSON with comments.
    """
    document, bare = read_jsonc(text)
    if not isinstance(document, dict) or "dockerComposeFile" in document:
        return []
    arguments = [str(part) for part in document.get("runArgs", [])] if _is_list(document.get("runArgs")) else []
    image, features = str(document.get("image", "")), document.get("features")
    requirements = document.get("hostRequirements")
    wanted = isinstance(requirements, dict) and requirements.get("gpu") not in (None, False)
    asks = wanted or any(re.match(r"--gpus\b|--runtime=nvidia|--device=?nvidia\.com", part) for part in arguments)
    asks = asks or any("nvidia.com/gpu" in part or part.startswith("/dev/nvidia") for part in arguments)
    cuda_feature = isinstance(features, dict) and any("nvidia-cuda" in name for name in features)
    hits: list[Hit] = []
    if not asks and (looks_gpu(image) or cuda_feature):
        key = "image" if looks_gpu(image) else "features"
        why = f"image {image[:100]}" if key == "image" else "the feature nvidia-cuda"
        hits.append(no_gpu(_line(bare, key), "the container is made for GPUs and requests none", why, _GPU_MEND))
    commands = " ".join(str(document.get(key, "")) for key in ("postStartCommand", "postCreateCommand"))
    if (looks_torch(image) and looks_gpu(image)) or trains(commands):
        hits += _shm(arguments, bare)
    if setting := empty_token(bare.replace('\\"', '"')):
        hits.append(token_hit(_line_of_text(bare, setting), setting))
    for key in ("containerEnv", "remoteEnv"):
        env = document.get(key)
        value = env.get("NVIDIA_DRIVER_CAPABILITIES") if isinstance(env, dict) else None
        hits += capabilities_hits(str(value or ""), _line_of_text(bare, "NVIDIA_DRIVER_CAPABILITIES"))
    return hits


def _shm(arguments: list[str], bare: str) -> list[Hit]:
    joined = "\n".join(arguments)
    if re.search(r"^--ipc\b", joined, re.M) or "/dev/shm" in joined:  # noqa: S108
        return []
    given = re.search(r"^--shm-size[=\n](\S+)", joined, re.M)
    return small_shm(_line(bare, "runArgs", "image"), given[1] if given else "", _SHM_MEND)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _line(bare: str, *keys: str) -> int:
    """Return the line of the first of these keys that is there."""
    for key in keys:
        match = re.search(rf'"{key}"\s*:', bare)
        if match:
            return bare.count("\n", 0, match.start()) + 1
    return 1


def _line_of_text(bare: str, text: str) -> int:
    return bare.count("\n", 0, max(0, bare.find(text))) + 1
