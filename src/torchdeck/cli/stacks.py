"""``torchdeck stacks``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from torchdeck.cli.options import json_option

if TYPE_CHECKING:
    from torchdeck.machine.stack import StackRequest


@click.command("stacks")
@click.option("--driver", help="NVIDIA driver, such as 535.104.05; or none.")
@click.option("--cc", "ccs", help="Compute capability of the GPU, such as 9.0; several separated by commas.")
@click.option("--python", help="Python, such as 3.11.")
@click.option("--arch", help="Processor: x86_64 or aarch64.")
@click.option("--torch", default="", help="A release or build: 2.6, 2.7-cu128, 2.6-cpu, latest. [the reference, 2.6.0]")
@click.option("--all", "every", is_flag=True, help="List also what is for other processors, or was not asked for.")
@click.option("--offline", is_flag=True, help="Do not ask whether PyTorch's own indexes can be reached.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    driver: str | None,
    ccs: str | None,
    python: str | None,
    arch: str | None,
    torch: str,
    every: bool,
    offline: bool,
    as_json: bool,
) -> None:
    """Show which torch build fits, and why the others do not. Without options: for this machine."""
    from torchdeck.cli.console import out_style, say, say_json
    from torchdeck.cli.failure import say_error
    from torchdeck.environment.uv import reachable
    from torchdeck.errors import EXIT_FINE
    from torchdeck.machine.stack import resolve_reachable, resolve_stack
    from torchdeck.machine.stack.failure import no_stack
    from torchdeck.render.stacks import render_stacks

    request = _request(driver, ccs, python, arch, torch)
    report = resolve_stack(request) if offline else resolve_reachable(request, reachable)
    say_json(report) if as_json else say(render_stacks(report, out_style(), every=every))
    if report.chosen is None:
        error = no_stack(report)
        say_error(error)
        context.exit(error.exit_code)
    context.exit(EXIT_FINE)


def _request(driver: str | None, ccs: str | None, python: str | None, arch: str | None, torch: str) -> StackRequest:
    """Return what was given; the rest from this machine, a GPU and its driver always together."""
    import msgspec

    from torchdeck.machine.facts import Missing
    from torchdeck.machine.probes import gather_for_stack
    from torchdeck.machine.stack import request_from
    from torchdeck.machine.stack.parse import parse_arch, parse_ccs, parse_driver, parse_python

    given = {
        "driver": parse_driver(driver) if driver is not None else None,
        "ccs": parse_ccs(ccs) if ccs is not None else None,
        "python": parse_python(python) if python is not None else None,
        "arch": parse_arch(arch) if arch is not None else None,
    }
    request = request_from(gather_for_stack(), torch)
    changes: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    if driver is not None or ccs is not None:
        # One GPU's driver says nothing about another machine's GPU.
        changes["driver"] = given["driver"] if driver is not None else Missing(reason="only the GPU was given")
        changes["ccs"] = given["ccs"] if ccs is not None else Missing(reason="only the driver was given")
    return msgspec.structs.replace(request, **changes)
