"""Rules on the image around torch: its base, its settings, its layers, and what it opens to others."""

from __future__ import annotations

import re

from torchdeck.machine.catalogue import Cuda, cuda_of
from torchdeck.machine.files.docker_view import View
from torchdeck.machine.files.dockerfile import Dockerfile, Instruction, pairs
from torchdeck.machine.files.hit import Hit, hit
from torchdeck.machine.files.images import looks_gpu
from torchdeck.machine.files.lab import empty_token, token_hit
from torchdeck.machine.stack.parse import version_tuple

_SECRET = re.compile(
    r"(^|_)(TOKEN|PASSWORD|PASSWD|SECRET|API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|CREDENTIALS)$", re.IGNORECASE
)
_PLACEHOLDER = re.compile(r"<.*>|\$.*|x{3,}|\.{3,}|your[-_ ].*|none|null|true|false|0|1|change-?me-at-run.*", re.I)
_SECRET_VALUE = re.compile(r"\b(hf_[A-Za-z0-9]{30,}|gh[pousr]_[A-Za-z0-9]{36,}|AKIA[0-9A-Z]{16}|sk-[A-Za-z0-9_-]{32,})")
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/\s:@$]{1,100}:[^/\s:@$]{1,200}@")
_ROOT_LOGIN = re.compile(r"PermitRootLogin[ \t=]+([\w-]+)", re.I)
_ROOT_PASSWORD = re.compile(r"['\"]?\broot:[^\s'\"|]{1,200}['\"]?[ \t]*\|[ \t]*chpasswd")


def judge_image(view: View) -> list[Hit]:
    """Run the rules on the image over one stage."""
    hits = [*_base_tag(view), *_jupyter(view)]
    for one in view.stage.instructions:
        hits += judge_secrets(one)
    if view.shipped:
        hits += [*_capabilities(view), *_pip_cache(view), *_ssh(view)]
    return hits


def judge_arguments(file: Dockerfile) -> list[Hit]:
    """Judge the build arguments before the first stage."""
    return [found for one in file.arguments for found in judge_secrets(one)]


def judge_driver_gate(view: View) -> list[Hit]:
    """Say which driver the base image asks hosts for."""
    image = view.image
    if image is None or image.maker != "cuda" or not image.cuda or view.env.get("NVIDIA_DISABLE_REQUIRE"):
        return []
    cuda = _cuda(image.cuda)
    if cuda is None or version_tuple(cuda.bundled) <= version_tuple(cuda.floor):
        return []
    return [
        hit(
            view.from_line,
            "image-requires-newer-driver",
            "info",
            f"{image.name}:{image.tag} starts on hosts with a driver of about {cuda.bundled} and newer only",
            cause=f"Its NVIDIA_REQUIRE_CUDA asks for CUDA {image.cuda}, with exceptions for some data-centre drivers.",
            evidence=f"CUDA {image.cuda} comes with the driver {cuda.bundled}; its major runs from {cuda.floor} on",
            needs=f"the driver {cuda.bundled} on the hosts, or a base that asks for less",
            mend="FROM python:3.12-slim  (torch's wheels bring CUDA)",
        )
    ]


def _cuda(version: str) -> Cuda | None:
    try:
        return cuda_of(version)
    except KeyError:
        return None


def _base_tag(view: View) -> list[Hit]:
    image, stage = view.image, view.stage
    if image is None or stage.parent is not None or image.digest or image.tag not in ("", "latest"):
        return []
    gpu = looks_gpu(stage.base)
    return [
        hit(
            stage.line,
            "base-image-unpinned",
            "warning" if gpu else "info",
            f"{image.name} is taken at its tag latest" if image.tag else f"{image.name} is taken without a tag",
            cause="The next build may get another Python, CUDA or torch.",
            needs="a tag that names the release, or a digest",
            mend=f"FROM {image.name}:TAG",
        )
    ]


def _capabilities(view: View) -> list[Hit]:
    value = view.env.get("NVIDIA_DRIVER_CAPABILITIES", "")
    line = view.setting_line("NVIDIA_DRIVER_CAPABILITIES")
    return capabilities_hits(value, line)


def capabilities_hits(value: str, line: int) -> list[Hit]:
    """Judge a value of NVIDIA_DRIVER_CAPABILITIES."""
    names = {part.strip() for part in value.split(",")}
    if not value.strip() or "$" in value or names & {"all", "compute"}:
        return []
    return [
        hit(
            line,
            "nvidia-env-incomplete",
            "error",
            f"NVIDIA_DRIVER_CAPABILITIES={value[:60]} leaves out compute",
            cause="The container gets no libcuda: torch sees no GPU, though nvidia-smi may show one.",
            needs="compute and utility",
            mend="NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        )
    ]


def _pip_cache(view: View) -> list[Hit]:
    if any(view.env.get(name, "").lower() not in ("", "0", "false") for name in ("PIP_NO_CACHE_DIR", "UV_NO_CACHE")):
        return []
    kept = []
    for one, install in view.installs:
        mounted = any("type=cache" in flag for flag in one.flags)
        off = install.flags & {"--no-cache-dir", "--no-cache", "-n"}
        cleaned = re.search(r"(pip|uv) cache (purge|clean)|rm -\w+ [^&;|]{0,200}\.cache", one.everything)
        if install.tool != "conda" and not (mounted or off or cleaned):
            kept.append(install)
    if not kept:
        return []
    flag = "--no-cache" if kept[0].tool == "uv" else "--no-cache-dir"
    return [
        hit(
            kept[0].line,
            "pip-cache-in-layer",
            "info",
            f"{kept[0].tool} keeps its downloads in the layer ({len(kept)} commands)"
            if len(kept) > 1
            else f"{kept[0].tool} keeps its downloads in the layer",
            cause="The wheels of torch and CUDA lie in the image a second time, packed.",
            evidence=tuple(f"line {install.line}" for install in kept[:10]),
            needs="no cache, or a cache mount",
            mend=(flag, "RUN --mount=type=cache,target=/root/.cache …"),
        )
    ]


def _jupyter(view: View) -> list[Hit]:
    hits = []
    user = next((one.text.strip() for one in reversed(view.history) if one.name == "USER"), "root")
    root = user.split(":")[0] in ("root", "0")
    for one in view.stage.instructions:
        if one.name not in ("RUN", "CMD", "ENTRYPOINT", "COPY", "ENV"):
            continue
        text = one.everything
        if root and view.shipped and "--allow-root" in text and re.search(r"jupyter|notebook|\blab\b", text):
            hits.append(
                hit(
                    one.line_of("--allow-root"),
                    "jupyter-runs-as-root",
                    "warning",
                    "Jupyter runs as root",
                    cause="Whoever reaches the notebook is root in the container, and so are the files in its mounts.",
                    evidence="no USER other than root is set",
                    needs="a user of its own",
                    mend=("RUN useradd --create-home lab", "USER lab"),
                )
            )
        if setting := empty_token(text):
            hits.append(token_hit(one.line_of(setting.split(".")[0]), setting))
    return hits


def judge_secrets(one: Instruction) -> list[Hit]:
    """Find secrets that an instruction writes into the image or its history. No finding repeats one."""
    if one.name in ("ENV", "ARG"):
        for name, value in pairs(one.raw):
            if _SECRET_VALUE.search(value) or (_SECRET.search(name) and "=" in one.raw and _literal(value)):
                return [_secret(one.line, f"{one.name} {name} holds a secret", "error")]
            if _SECRET.search(name) and ((one.name == "ARG" and not value) or f"${name}" in value.replace("{", "")):
                return [_secret(one.line, f"the build argument {name} puts a secret into the image", "warning")]
            if one.name == "ENV" and "=" not in one.raw and _SECRET.search(name) and _literal(value):
                return [_secret(one.line, f"ENV {name} holds a secret", "error")]
    elif one.name == "RUN" and (_SECRET_VALUE.search(one.raw) or _PASSWORD_IN_ADDRESS.search(one.raw)):
        return [_secret(one.line, "RUN holds a secret or an address with a password", "error")]
    return []


def _literal(value: str) -> bool:
    return bool(value) and not _PLACEHOLDER.fullmatch(value) and "$" not in value


def _secret(line: int, title: str, severity: str) -> Hit:
    return hit(
        line,
        "secret-in-image",
        "error" if severity == "error" else "warning",
        title,
        cause="Everyone who has the image can read its settings and the history of its build.",
        needs="a build secret, or a variable that is set when the container starts",
        mend=("RUN --mount=type=secret,id=NAME …", "docker run --env-file FILE …"),
    )


def _ssh(view: View) -> list[Hit]:
    opens = any(one.name == "EXPOSE" and re.search(r"(^|\s)22(/tcp)?(\s|$)", one.text) for one in view.history)
    starts = any(one.name in ("CMD", "ENTRYPOINT") and "sshd" in one.text for one in view.history)
    if not (opens or starts):
        return []
    for one in view.history:
        said = _ROOT_LOGIN.findall(one.everything) if one.name in ("RUN", "COPY") else []
        password = one.name == "RUN" and _ROOT_PASSWORD.search(one.everything)
        if (said and said[-1].lower() == "yes") or password:
            return [
                hit(
                    one.line_of("PermitRootLogin" if said else "chpasswd"),
                    "ssh-root-login",
                    "error",
                    "SSH lets root in" + (", with a password that stands in the image" if password else ""),
                    cause="Whoever reaches port 22 and has the password is root in the container.",
                    needs="keys only, and a user other than root",
                    mend=("PermitRootLogin no", "PasswordAuthentication no"),
                )
            ]
    return []
