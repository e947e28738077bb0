"""Carrying a fix out: each file that may change is copied first, and the first command that fails ends it."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timezone
from pathlib import Path

from torchdeck import runner
from torchdeck.errors import DiskError, OutsideError, ToolError
from torchdeck.machine.fixes.plan import Fix

_TIMEOUT_S = 300.0


def carry_out(fix: Fix) -> list[str]:
    """Carry out one fix and return what was copied where.

    Raises:
        ToolError: A program is not there, or failed; what had been copied is named.
        DiskError: A copy could not be made, so nothing was changed.
        OutsideError: Only root may do this.
    """
    if fix.as_root and os.geteuid() != 0:
        raise OutsideError(
            f"only root may mend {fix.rule}",
            found=f"user id {os.geteuid()}",
            mend=f"sudo {' '.join(fix.steps[0].argv)}",
        )
    copies: list[str] = []
    for step in fix.steps:
        if step.backup and Path(step.backup).is_file():
            copies.append(f"{step.backup} → {_copy(Path(step.backup))}")
        done = runner.run(list(step.argv), timeout_s=_TIMEOUT_S)
        if not done.ok:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            missing = done.rc == runner.RC_NOT_FOUND
            raise ToolError(
                f"could not {fix.title}",
                rule=fix.rule,
                found=f"there is no {step.argv[0]}" if missing else f"{step.argv[0]} ended with {done.rc}",
                needs=f"{step.argv[0]} on PATH" if missing else "",
                detail="\n".join([*said[-5:], *(f"copied before: {text}" for text in copies)]),
                mend=" ".join(step.argv),
            )
    return copies


def _copy(file: Path) -> Path:
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    target = file.with_name(f"{file.name}.torchdeck-{stamp}")
    try:
        shutil.copy2(file, target)
    except OSError as error:
        raise DiskError(
            f"{file} could not be copied, so it was not changed", found=error.strerror or str(error)
        ) from None
    return target
