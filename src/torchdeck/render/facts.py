"""The facts of a machine as labelled lines; what could not be known stands there with its reason."""

from __future__ import annotations

from torchdeck.machine.facts import Facts, Missing
from torchdeck.machine.facts.caches import Cache
from torchdeck.machine.facts.engines import Engine

Rows = list[tuple[str, str]]


def fact_rows(facts: Facts) -> list[tuple[str, str]]:
    """Return the facts as labelled lines, what is missing with its reason."""
    rows: list[tuple[str, str]] = []
    system = facts.system
    if isinstance(system, Missing):
        rows.append(("system", _missing(system)))
    else:
        name = system.os if isinstance(system.pretty_name, Missing) else system.pretty_name
        libc = "" if isinstance(system.glibc, Missing) else f", glibc {system.glibc}"
        rows.append(("system", f"{name}, {system.arch}, kernel {system.kernel}{libc}"))
        if system.wsl:
            rows.append(("inside", "Windows Subsystem for Linux"))
        if system.container and not isinstance(system.container, Missing):
            rows.append(("inside", f"a container ({system.container})"))
    rows += _nvidia_rows(facts)
    python = facts.python
    if isinstance(python, Missing):
        rows.append(("python", _missing(python)))
    else:
        headers = "" if python.headers else ", no headers"
        rows.append(("python", f"{python.version} at {python.path}{headers}"))
        if isinstance(python.torch, Missing):
            rows.append(("torch", _missing(python.torch)))
        elif python.torch is not None:
            rows.append(("torch", f"{python.torch.version} in that Python"))
    tools = facts.toolchain
    if isinstance(tools, Missing):
        rows.append(("compilers", _missing(tools)))
    else:
        found = [tool.path for tool in (tools.c, tools.cxx) if tool is not None]
        rows.append(("compilers", ", ".join(found) or "none"))
    return rows + _storage_rows(facts) + _host_rows(facts) + _engine_rows(facts) + _cache_rows(facts)


def _nvidia_rows(facts: Facts) -> list[tuple[str, str]]:
    nvidia = facts.nvidia
    if isinstance(nvidia, Missing):
        return [("driver", _missing(nvidia))]
    driver = nvidia.driver
    if isinstance(driver, Missing):
        text = _missing(driver)
    elif driver is None:
        text = "no NVIDIA driver"
    else:
        cuda = "" if isinstance(driver.cuda, Missing) else f", up to CUDA {driver.cuda}"
        text = f"{driver.version}{cuda}"
    rows = [("driver", text)]
    if isinstance(nvidia.gpus, Missing):
        rows.append(("gpu", _missing(nvidia.gpus)))
    elif nvidia.gpus:
        for gpu in nvidia.gpus:
            cc = "cc not known" if isinstance(gpu.cc, Missing) else f"sm_{gpu.cc[0]}{gpu.cc[1]}"
            memory = "" if isinstance(gpu.memory_bytes, Missing) else f", {gpu.memory_bytes / 2**30:.1f} GiB"
            rows.append((f"gpu {gpu.index}", f"{gpu.name}, {cc}{memory}"))
    elif not isinstance(nvidia.num_pci, Missing) and nvidia.num_pci:
        rows.append(("gpu", f"{nvidia.num_pci} on the PCI bus"))
    else:
        rows.append(("gpu", "none"))
    return rows


def _storage_rows(facts: Facts) -> list[tuple[str, str]]:
    storage = facts.storage
    if isinstance(storage, Missing):
        return [("disks", _missing(storage))]
    rows = []
    for label, place in (("decks", storage.data), ("tmp", storage.tmp), ("shm", storage.shm)):
        if isinstance(place, Missing):
            rows.append((label, _missing(place)))
        else:
            rows.append((label, f"{place.path}: {place.free_bytes / 1e9:.1f} GB free"))
    return rows


def _missing(value: Missing) -> str:
    return f"not known: {value.reason}"


def _host_rows(facts: Facts) -> Rows:
    host = facts.host
    if host is None:
        return []
    if isinstance(host, Missing):
        return [("host", _missing(host))]
    rows: Rows = []
    if not isinstance(host.cpu, Missing):
        cpu = host.cpu
        model = cpu.arch if isinstance(cpu.model, Missing) else cpu.model
        flags = "" if isinstance(cpu.flags, Missing) or not cpu.flags else f", {' '.join(cpu.flags)}"
        rows.append(("cpu", f"{model}, {_count(cpu.num_usable)} of {_count(cpu.num_logical)} processors{flags}"))
    if not isinstance(host.memory, Missing):
        memory = host.memory
        text = f"{_gib(memory.available_bytes)} of {_gib(memory.total_bytes)} available"
        if isinstance(memory.limit_bytes, int):
            text += f", limited to {_gib(memory.limit_bytes)} ({_gib(memory.used_bytes)} used)"
        rows.append(("memory", text))
    surroundings = facts.surroundings
    if surroundings is not None and not isinstance(surroundings, Missing) and surroundings.slurm is not None:
        rows.append(("inside", f"a Slurm job on {_count(surroundings.slurm.num_nodes)} machine(s)"))
    return rows


def _engine_rows(facts: Facts) -> Rows:
    engines = facts.engines
    if engines is None or isinstance(engines, Missing):
        return [] if engines is None else [("engines", _missing(engines))]
    rows: Rows = []
    for name, engine in (("docker", engines.docker), ("podman", engines.podman)):
        if isinstance(engine, Missing):
            rows.append((name, _missing(engine)))
        elif engine is not None:
            rows.append((name, _engine(engine)))
    if engines.toolkit is not None and not isinstance(engines.toolkit, Missing):
        specs = () if isinstance(engines.cdi, Missing) else engines.cdi
        version = "" if isinstance(engines.toolkit.version, Missing) else f" {engines.toolkit.version}"
        rows.append(("toolkit", f"NVIDIA Container Toolkit{version}, {len(specs)} CDI specification(s)"))
    return rows


def _engine(engine: Engine) -> str:
    version = "version not known" if isinstance(engine.version, Missing) else engine.version
    words = [
        version,
        "" if engine.daemon is None or isinstance(engine.daemon, Missing) else f"daemon {engine.daemon}",
        "rootless" if engine.rootless is True else "",
        "Docker Desktop" if engine.desktop is True else "",
        "snap" if engine.snap else "",
    ]
    if isinstance(engine.runtimes, tuple):
        words.append("with NVIDIA's runtime" if "nvidia" in engine.runtimes else "without NVIDIA's runtime")
    return ", ".join(word for word in words if word)


def _cache_rows(facts: Facts) -> Rows:
    caches = facts.caches
    if caches is None or isinstance(caches, Missing):
        return []
    named = {
        "inductor": caches.inductor,
        "triton": caches.triton,
        "hugging face": caches.huggingface,
        "torch hub": caches.torch_hub,
        "pip": caches.pip,
        "uv": caches.uv,
    }
    shown = [
        f"{name} {_size(cache)}" for name, cache in named.items() if not isinstance(cache, Missing) and cache.exists
    ]
    return [("caches", ", ".join(shown))] if shown else []


def _size(cache: Cache) -> str:
    size = "?" if cache.size_bytes is None else f"{cache.size_bytes / 1e9:.1f} GB"
    return f"{'' if cache.complete else '≥ '}{size} in {cache.path}"


def _count(value: int | Missing) -> str:
    return "?" if isinstance(value, Missing) else str(value)


def _gib(value: int | Missing | None) -> str:
    return "?" if value is None or isinstance(value, Missing) else f"{value / 2**30:.1f} GiB"
