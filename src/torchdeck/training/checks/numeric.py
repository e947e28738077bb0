"""Products and convolutions on every device, checked element by element against float64 on the CPU.

The inputs are random, of a fixed seed, and rounded to the dtype first, so that float64 sees the same numbers. For
c = a·b with K terms in the sum, the computed ĉ must satisfy

    |ĉ - c|  <=  eps_out/2·|c|  +  (K·eps_acc + 2·u_in)·(|a|·|b|)

- ``eps_out`` is the dtype's epsilon: the result is rounded to the dtype once.
- ``eps_acc`` is float32's epsilon (2^-23), or the dtype's own if that is smaller: sums of half-precision products
  are kept in float32. K·eps is the worst case for any order of summation (Higham, Accuracy and Stability of
  Numerical Algorithms, section 3.1), doubled because tensor cores cut off where others round.
- ``u_in`` is what the unit may lose of each input: 0, except 2^-11 where TF32 is in force (cuDNN's default for
  float32 on Ampere and newer; NVIDIA_TF32_OVERRIDE), and eps/2 in half-precision convolutions, whose Winograd
  transforms are rounded to the dtype.
- ``|a|·|b|`` is the same product of the absolute values.

A right machine cannot miss these bounds; a lost, repeated or garbled term, being of the size of a·b itself, can
hardly stay within them. They do not find an error that is smaller than rounding.

The float64 side must not rest on the code that is being checked: some elements of the product are added up exactly in
Python, and the convolution's reference unfolds its input and multiplies, forward and backward.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .outcome import Wrong

SEED = 20240601
DTYPES = ("float32", "float16", "bfloat16")
_TF32_ROUNDOFF = 2.0**-11
_FLOAT32_EPS = 2.0**-23
_AMPERE = 8
_NUM_ADDED_UP = 16


def devices() -> list[str]:
    """Return ``cpu`` and every CUDA device."""
    return ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0))]


def bound(exact: Any, sizes: Any, *, dtype: Any, num_terms: int, input_roundoff: float = 0.0) -> Any:
    """Return the largest allowed error of each element; the formula is in this module's docstring.

    Args:
        exact: The result in float64.
        sizes: The same of the absolute values, float64.
        dtype: What the device computed in.
        num_terms: K, the terms of one sum.
        input_roundoff: ``u_in``.
    """
    eps_out = torch.finfo(dtype).eps
    eps_acc = min(_FLOAT32_EPS, eps_out)
    return eps_out / 2 * exact.abs() + (num_terms * eps_acc + 2 * input_roundoff) * sizes


def compare(computed: Any, exact: Any, allowed: Any) -> float:
    """Return the largest error as a part of what is allowed there.

    Raises:
        Wrong: An element is outside its bound, or is not a number.
    """
    if computed.shape != exact.shape:
        raise Wrong(f"the result has shape {tuple(computed.shape)}, not {tuple(exact.shape)}")
    errors = (computed.detach().cpu().double() - exact).abs()
    part = errors / allowed.clamp_min(torch.finfo(torch.float64).tiny)
    bad = ~(part <= 1)  # NaN compares as false, so it is bad
    if bad.any():
        worst = int(part.nan_to_num(nan=float("inf")).argmax())
        raise Wrong(
            f"{int(bad.sum())} of {bad.numel()} elements are wrong: got {computed.flatten()[worst].item():.6g}, "
            f"exact {exact.flatten()[worst].item():.6g}, allowed error {allowed.flatten()[worst].item():.3g}"
        )
    return float(part.max())


def _float32_roundoff(device: str, by_default: bool) -> float:
    """Return ``u_in`` of float32 on a device: TF32's where the hardware has it and something puts it in force."""
    forced = os.environ.get("NVIDIA_TF32_OVERRIDE")
    in_force = forced == "1" or (by_default and forced != "0")
    if not device.startswith("cuda") or not in_force or torch.cuda.get_device_capability(device)[0] < _AMPERE:
        return 0.0
    return _TF32_ROUNDOFF


def cases_matmul() -> list[tuple[str, Callable[[], str]]]:
    """Name a product for each device and dtype."""
    return [
        (f"{device} {dtype}", partial(_matmul, device, getattr(torch, dtype)))
        for device in devices()
        for dtype in DTYPES
    ]


def _matmul(device: str, dtype: Any) -> str:
    # Large enough on a GPU for its tensor-core kernels, small enough on a CPU that emulates half precision.
    rows, terms, columns = (1024, 1024, 1024) if device.startswith("cuda") else (192, 512, 160)
    random = torch.Generator().manual_seed(SEED)
    a = torch.randn(rows, terms, generator=random).to(dtype)
    b = torch.randn(terms, columns, generator=random).to(dtype)
    exact, sizes = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    _hold_against_python(a, b, exact, sizes)
    switches = torch.backends.cuda.matmul
    previous = torch.get_float32_matmul_precision()
    fp16_sums, bf16_sums = (
        switches.allow_fp16_reduced_precision_reduction,
        switches.allow_bf16_reduced_precision_reduction,
    )
    try:
        # The bounds hold for sums in float32, so shortcuts that are on by default or by the user are off meanwhile.
        torch.set_float32_matmul_precision("highest")
        switches.allow_fp16_reduced_precision_reduction = False
        switches.allow_bf16_reduced_precision_reduction = False
        computed = torch.matmul(a.to(device), b.to(device)).cpu()
    finally:
        torch.set_float32_matmul_precision(previous)
        switches.allow_fp16_reduced_precision_reduction = fp16_sums
        switches.allow_bf16_reduced_precision_reduction = bf16_sums
    roundoff = _float32_roundoff(device, by_default=False) if dtype == torch.float32 else 0.0
    part = compare(computed, exact, bound(exact, sizes, dtype=dtype, num_terms=terms, input_roundoff=roundoff))
    return f"{rows}x{terms}x{columns}, largest error {part:.1%} of the bound" + (" (TF32)" if roundoff else "")


def _hold_against_python(a: Any, b: Any, exact: Any, sizes: Any) -> None:
    """Add up some elements, spread over the whole product, in Python: float64 holds each term, ``fsum`` their sum.

    Raises:
        Wrong: The float64 product or its bound differs by more than float64 may.
    """
    rows, columns = exact.shape
    for number in range(_NUM_ADDED_UP):
        row, column = number * (rows - 1) // (_NUM_ADDED_UP - 1), (number * 37 + 11) % columns
        terms = [x * y for x, y in zip(a[row].tolist(), b[:, column].tolist(), strict=True)]
        size = math.fsum(map(abs, terms))
        allowed = 2 * len(terms) * torch.finfo(torch.float64).eps * size
        for computed, wanted in ((exact, math.fsum(terms)), (sizes, size)):
            got = float(computed[row, column])
            if not abs(got - wanted) <= allowed:
                raise Wrong(f"in float64, element [{row}, {column}] is {got:.6g}, and by hand {wanted:.6g}")


def cases_conv() -> list[tuple[str, Callable[[], str]]]:
    """Name a convolution, forward and backward, for each device; in float16 too where cuDNN does it."""
    return [
        (f"{device} {dtype}", partial(_conv, device, getattr(torch, dtype)))
        for device in devices()
        for dtype in (("float32", "float16") if device.startswith("cuda") else ("float32",))
    ]


def _conv(device: str, dtype: Any) -> str:
    """Convolve and differentiate; the gradients are convolutions too, so the same bound holds with their own K."""
    batch, num_in, num_out, side, window = 4, 16, 32, 24, 3
    random = torch.Generator().manual_seed(SEED)
    x = torch.randn(batch, num_in, side, side, generator=random).to(dtype)
    w = torch.randn(num_out, num_in, window, window, generator=random).to(dtype)
    g = torch.randn(batch, num_out, side, side, generator=random).to(dtype)
    exact = _with_gradients(_unfolded, x.double(), w.double(), g.double())
    sizes = _with_gradients(_unfolded, x.double().abs(), w.double().abs(), g.double().abs())
    conv2d = partial(torch.nn.functional.conv2d, padding=window // 2)
    computed = _with_gradients(conv2d, x.to(device), w.to(device), g.to(device))
    if device.startswith("cuda") and not torch.backends.cudnn.is_acceptable(x.to(device)):
        raise Wrong("cuDNN is not there or does not accept this tensor")
    roundoff = _float32_roundoff(device, by_default=True) if dtype == torch.float32 else torch.finfo(dtype).eps / 2
    num_terms = (num_in * window**2, num_out * window**2, batch * side**2)
    parts = [
        compare(got, want, bound(want, size, dtype=dtype, num_terms=terms, input_roundoff=roundoff))
        for got, want, size, terms in zip(computed, exact, sizes, num_terms, strict=True)
    ]
    tf32 = " (TF32)" if roundoff and dtype == torch.float32 else ""
    return f"output and both gradients, largest error {max(parts):.1%} of the bound{tf32}"


def _unfolded(x: Any, w: Any) -> Any:
    """Convolve without a convolution: each window of the input as a column, times the weights as a matrix."""
    side, window = x.shape[-1], w.shape[-1]
    columns = torch.nn.functional.unfold(x, window, padding=window // 2)
    return (w.flatten(1) @ columns).unflatten(-1, (side, side))


def _with_gradients(function: Callable[[Any, Any], Any], x: Any, w: Any, g: Any) -> tuple[Any, Any, Any]:
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    y = function(x, w)
    dx, dw = torch.autograd.grad(y, (x, w), g)
    return y.detach(), dx, dw
