"""Command-line interface ``kassay COMMAND``, which loads each command on demand."""

from kassay.experiments.cli.application import COMMAND_GROUPS, COMMANDS, app, main

__all__ = ["COMMANDS", "COMMAND_GROUPS", "app", "main"]
