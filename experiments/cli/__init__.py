"""Command-line interface ``kassay COMMAND``, which loads each command on demand."""

from kassay.experiments.cli.application import app, main
from kassay.experiments.cli.command_table import COMMAND_GROUPS, COMMANDS

__all__ = ["COMMANDS", "COMMAND_GROUPS", "app", "main"]
