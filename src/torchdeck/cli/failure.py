"""Where an error becomes words on standard error and an exit code. No traceback reaches a user for a user's fault."""

from __future__ import annotations

from collections.abc import Sequence

import click

from torchdeck.errors import EXIT_FINE, EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_USAGE, TorchdeckError


def guarded(app: click.Group, arguments: Sequence[str]) -> int:
    """Run the application and return the exit code of its contract, whatever happens inside."""
    try:
        result = app.main(list(arguments), prog_name="torchdeck", standalone_mode=False)
    except TorchdeckError as error:
        say_error(error)
        return error.exit_code
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return EXIT_USAGE
    except SystemExit:
        # The reader of our output went away (``| head``), and click leaves so: nothing is wrong, all is said.
        return EXIT_FINE
    except OSError as error:
        return _outside(error)
    except Exception as error:
        return _bug(error, arguments)
    return result if isinstance(result, int) else EXIT_FINE


def say_error(error: TorchdeckError) -> None:
    """Print an error for a person, on standard error."""
    from torchdeck.cli.console import err_style
    from torchdeck.render.text import render_error

    click.echo(render_error(error, err_style()), err=True)


def _outside(error: OSError) -> int:
    """Turn an operating system's refusal that nobody named more exactly into words."""
    import errno

    from torchdeck.errors import DiskError

    place = error.filename or "a file"
    reasons = {
        errno.ENOSPC: ("the disk is full", "free space there"),
        errno.EDQUOT: ("the disk quota is used up", "free space there"),
        errno.EACCES: ("no permission", "a place that you may write"),
        errno.EPERM: ("no permission", "a place that you may write"),
        errno.EROFS: ("the file system is read-only", "a place that you may write"),
    }
    found, needs = reasons.get(error.errno or 0, (error.strerror or str(error), ""))
    wrapped = DiskError(
        f"cannot use {place}",
        rule="disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "",
        found=found,
        needs=needs,
        mend="XDG_DATA_HOME=/another/disk torchdeck up" if needs else (),
    )
    say_error(wrapped)
    return wrapped.exit_code


def _bug(error: Exception, arguments: Sequence[str]) -> int:
    """Save the trace of our own bug and print its path."""
    import contextlib
    import tempfile
    import traceback
    from datetime import datetime
    from pathlib import Path

    from torchdeck import __version__, places

    text = "".join(traceback.format_exception(error))
    text = f"torchdeck {__version__}, command: {' '.join(arguments[:1])}\n\n{places.fold_home(text)}"
    name = f"trace-{datetime.now():%Y%m%d-%H%M%S-%f}.txt"
    for folder in (places.cache_dir() / "traces", Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / name
            path.write_text(text, encoding="utf-8")
            click.echo(
                f"error: this is a bug in torchdeck ({type(error).__name__}: {error})\n"
                f"  trace   {path}\n  mend    please report it with that file",
                err=True,
            )
            return EXIT_INTERNAL
    click.echo(text, err=True)
    return EXIT_INTERNAL
