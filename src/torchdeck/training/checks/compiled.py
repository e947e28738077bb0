"""The compiler and CUDA graphs: both must give what eager gives.

The compiled function is compiled for real: its caches are new (see ``program``), and the check looks whether code
was made, because several settings let torch fall back to eager in silence. CUDA graphs are what ``torch.cuda.graph``
makes; whole-step graphs with an optimizer are the Engine's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .numeric import SEED, devices
from .outcome import Skip, Wrong, first_error_line

# Compiled and eager sum in different orders; this is about 800 float32 roundings at the largest element.
TOLERANCE = 1e-4


def _block(x: Any, w: Any, b: Any) -> Any:
    """Compute something that Inductor fuses: a product, pointwise work, a sum."""
    hidden = torch.nn.functional.gelu(x @ w + b)
    return (hidden * hidden.sigmoid()).sum(-1)


def _inputs(device: str, seed: int = SEED) -> tuple[Any, Any, Any]:
    random = torch.Generator().manual_seed(seed)
    shapes = ((64, 48), (48, 80), (80,))
    x, w, b = (torch.randn(*shape, generator=random).to(device).requires_grad_() for shape in shapes)
    return x, w, b


def _values_and_gradients(function: Callable[..., Any], inputs: tuple[Any, Any, Any]) -> list[Any]:
    value = function(*inputs)
    return [value.detach(), *torch.autograd.grad(value.sum(), inputs)]


def _largest_difference(computed: list[Any], wanted: list[Any]) -> float:
    """Return the largest difference as a part of the largest element.

    Raises:
        Wrong: It is above ``TOLERANCE``, or not a number.
    """
    names = ("output", "gradient of x", "gradient of w", "gradient of b")
    largest = 0.0
    for name, got, want in zip(names, computed, wanted, strict=True):
        difference = float((got - want).abs().max() / want.abs().max())
        if not difference <= TOLERANCE:
            raise Wrong(f"{name} differs from eager by {difference:.2g} of its largest element; {TOLERANCE} is allowed")
        largest = max(largest, difference)
    return largest


def cases_compile() -> list[tuple[str, Callable[[], str]]]:
    """Name the CPU and one GPU of each compute capability: code for one serves all of its kind."""
    subjects = ["cpu"]
    seen: set[tuple[int, int]] = set()
    for device in devices()[1:]:
        capability = torch.cuda.get_device_capability(device)
        if capability not in seen:
            seen.add(capability)
            subjects.append(device)
    return [(device, partial(_compile, device)) for device in subjects]


def _compile(device: str) -> str:
    inputs = _inputs(device)
    torch._dynamo.reset()
    before = _num_made()
    try:
        computed = _values_and_gradients(torch.compile(_block, backend="inductor", fullgraph=True), inputs)
    except Exception as error:
        line = first_error_line(error)
        # Inductor imports packages that torch does not require (setuptools, until 2.6): no compiler can mend that.
        missing = line.startswith("ModuleNotFoundError")
        raise Wrong(f"torch.compile needs a package: {line}" if missing else f"{_compiler(device)}; {line}") from error
    num_made = _num_made() - before
    if num_made == 0:
        raise Wrong(f"nothing was compiled, torch ran eagerly; set are: {_switches() or 'none of the known switches'}")
    difference = _largest_difference(computed, _values_and_gradients(_block, inputs))
    return f"forward and backward, {num_made} files made, {difference:.1e} from eager; {_compiler(device)}"


def _num_made() -> int:
    """Count the programs and binaries in the new cache."""
    folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    return sum(path.suffix in {".py", ".so", ".cubin"} for path in folder.rglob("*")) if folder.is_dir() else 0


def _switches() -> str:
    known = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "TORCHDYNAMO_SUPPRESS_ERRORS", "TORCHINDUCTOR_DISABLE")
    return ", ".join(f"{name}={os.environ[name]}" for name in known if name in os.environ)


def _compiler(device: str) -> str:
    """Name the compiler that the device's code needs on this machine: C++ for a CPU, C for Triton's launcher."""
    variable, names = ("CXX", ("g++",)) if device == "cpu" else ("CC", ("gcc", "clang"))
    wanted = os.environ.get(variable)
    found = shutil.which(wanted) if wanted else next((path for name in names if (path := shutil.which(name))), None)
    if found:
        return f"compiler {found}"
    asked = f"{variable}={wanted}" if wanted else f"{variable} is not set and {' or '.join(names)} not on PATH"
    return f"no C++ compiler ({asked})" if device == "cpu" else f"no C compiler ({asked})"


def cases_cudagraph() -> list[tuple[str, Callable[[], str]]]:
    """Name every CUDA device.

    Raises:
        Skip: There is none.
    """
    cuda = devices()[1:]
    if not cuda:
        raise Skip("CUDA graphs need a CUDA device")
    return [(device, partial(_cudagraph, device)) for device in cuda]


def _cudagraph(device: str) -> str:
    """Record forward and backward once, replay with new input, and compare with eager on that input."""
    with torch.cuda.device(device):
        held = _inputs(device)
        # Libraries allocate their workspaces on first use, which a recording forbids: run on a side stream before.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                _values_and_gradients(_block, held)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = _values_and_gradients(_block, held)
        fresh = _inputs(device, SEED + 1)
        with torch.no_grad():
            for target, source in zip(held, fresh, strict=True):
                target.copy_(source)
        graph.replay()
        torch.cuda.synchronize()
        difference = _largest_difference(results, _values_and_gradients(_block, fresh))
    return f"recorded, replayed with new input, {difference:.1e} from eager"
