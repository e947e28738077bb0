"""The table of commands. A command's module is imported only when that command runs."""

from __future__ import annotations

import importlib
from typing import Any

import click

from torchdeck import __version__

# name -> (module, one-line help). The help stands here too so that ``--help`` imports no command.
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("up", "Make the environment, verify it, start JupyterLab."),
    "status": ("status", "Show the decks: address, stack, health."),
    "logs": ("logs", "Show what JupyterLab or the installation printed."),
    "exec": ("exec_", "Run a command inside the deck."),
    "verify": ("verify", "Prove that the deck computes right."),
    "upgrade": ("upgrade", "Preview and make the move to another stack."),
    "down": ("down", "Stop JupyterLab; everything stays."),
    "rm": ("rm", "Remove the deck; notebooks stay."),
    "stacks": ("stacks", "Show which torch, CUDA and Python fit this machine, and why."),
    "doctor": ("doctor", "Find what is wrong, or will go wrong, on this machine."),
    "explain": ("explain", "Find the cause in a log, and the command that mends it."),
    "config": ("config", "Show the settings and where each comes from."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return its command object."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"torchdeck.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, importing none."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Find a command; for a misspelt one, name the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=0.5)
            if near:
                raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx) from error
            raise


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="torchdeck")
def app() -> None:
    """From a bare machine to JupyterLab on a verified PyTorch + CUDA, in one command.

    Start with:  torchdeck up
    """
