"""Table of the commands, which loads the module of a command when the command runs."""

import importlib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from kassay.experiments.cli.options.option_groups import expand_options

COMMANDS = {
    "import": "Convert captures of Kafka's tools, or groups of a cluster, to group documents.",
    "assign": "Assign partitions with one of Kafka's assignors or a custom assignor.",
    "solve": "Find the assignment with the fewest moves among those with minimum imbalance.",
    "compare": "Compare assignors with the proven optimum.",
    "explain": "Explain why an assignment is not optimal, as chains of transfers.",
    "frontier": "Find the minimum imbalance for each number of moves.",
    "members": "Find the minimum number of members for a maximum load.",
    "ladder": "Find the numbers of members that lower the maximum load.",
    "verify": "Check assignments and their certificates without a solver.",
    "what-if": "Find the optimal assignment of a group after changes to the group.",
    "plan": "Plan the moves from the current to the optimal assignment of each group.",
    "survey": "Rank many groups by the gain of an optimal plan.",
    "forecast": "Forecast the rebalances that a change of a group causes.",
    "simulate": "Simulate the rebalances of consumer groups over time.",
    "study": "Compare assignors with the proven optimum on many groups, with Spark.",
    "history": "Reconstruct past rebalances from __consumer_offsets, with Spark.",
    "hunt": "Search for the smallest groups on which an assignor has a shortcoming.",
    "report": "Write a report of the output of kassay study or kassay history.",
    "implementations": "List and install client libraries, to run their own assignors.",
    "agreement": "Compare assignors of client libraries with Kafka's Java assignors.",
    "releases": "Run an assignor of each installed release of a library on each group.",
    "anonymize": "Replace the names in group documents, so that the documents can be shared.",
    "doctor": "Check whether this machine meets the requirements of kassay.",
}
"""One-line help of each command, equal to the first line of the command's docstring."""


class _Command(TyperCommand):
    """Typer command with short placeholders in its help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's parameters, without Python types and ranges in the help."""
        params: list[Any] = super().get_params(ctx)
        for param in params:
            param.min = param.max = None  # Used only by the help; typer checks the annotation.
            if param.param_type_name == "argument":
                param.display_type_rich = lambda ctx: ""  # noqa: ARG005
            elif param.metavar is None:
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words that follow the command name in the usage line."""
        arguments = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        names = [p.metavar if p.required else f"[{p.metavar}]" for p in arguments]
        return ["[OPTIONS]", *names]


class _LazyCommand(TyperCommand):
    """Placeholder for a command, which imports the command's module when the command runs."""

    def load(self) -> Any:
        """Import the module of the command, and return the complete Typer command."""
        name = "import_" if self.name == "import" else (self.name or "").replace("-", "_")
        module = importlib.import_module(f"kassay.experiments.cli.commands.{name}")
        command = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        command.command(self.name, cls=_Command)(expand_options(getattr(module, name)))
        return typer.main.get_command(command)

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, *rest, **extra)


class CommandTable(TyperGroup):
    """Typer command group that lists all commands without importing their modules."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return a placeholder for a command, which imports its module when it runs."""
        if cmd_name not in COMMANDS:
            return None
        return _LazyCommand(name=cmd_name, short_help=COMMANDS[cmd_name])
