"""Define the command ``kassay`` and import the module of each subcommand on demand."""

from kassay.experiments.cli.application import COMMAND_GROUPS, COMMANDS, app, main

__all__ = ["COMMANDS", "COMMAND_GROUPS", "app", "main"]
