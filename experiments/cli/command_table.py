"""Table of the commands, which loads the module of a command when the command runs."""

import importlib
from typing import Any

from typer.core import TyperCommand, TyperGroup

from kassay.experiments.cli.options.option_groups import ComposedCommand

COMMAND_GROUPS = {
    "Understand": {
        "import": "Convert captures of Kafka's tools, or groups of a cluster, to group documents.",
        "compare": "Compare assignors with the proven optimum.",
        "explain": "Explain why an assignment is not optimal, as chains of transfers.",
        "assign": "Assign partitions with one of Kafka's assignors or a custom assignor.",
        "survey": "Rank many groups by the gain of a plan.",
        "anonymize": "Replace the names in group documents, so that the documents can be shared.",
        "doctor": "Check whether this machine meets the requirements of kassay.",
    },
    "Plan": {
        "plan": "Plan the moves from the current to the optimal assignment of each group.",
        "what-if": "Find the optimal assignment of a group after changes to the group.",
        "members": "Find the minimum number of members for a maximum load.",
        "ladder": "List the numbers of members at which the maximum load drops.",
        "frontier": "Find the minimum imbalance for each number of moves.",
        "solve": "Find the assignment with the fewest moves among those with minimum imbalance.",
        "verify": "Check assignments and their certificates without a solver.",
    },
    "Watch": {
        "history": "Reconstruct past rebalances from __consumer_offsets, with Spark.",
        "forecast": "Forecast the rebalances that a change of a group causes.",
        "simulate": "Simulate the rebalances of consumer groups over time.",
    },
    "Research": {
        "study": "Compare assignors with the proven optimum on many groups, with Spark.",
        "report": "Write a report of the output of kassay study or kassay history.",
        "hunt": "Search for the smallest groups on which an assignor has a shortcoming.",
        "trajectory": "Find the fewest moves over a sequence of rebalances.",
        "implementations": "List and install client libraries, to run their own assignors.",
        "agreement": "Compare assignors of client libraries with Kafka's Java assignors.",
        "releases": "Run an assignor of each installed release of a library on each group.",
    },
}
"""One-line help of each command, equal to the first line of its docstring, by purpose."""

COMMANDS = {name: text for group in COMMAND_GROUPS.values() for name, text in group.items()}
"""One-line help of each command."""


class _LazyCommand(TyperCommand):
    """Placeholder for a command, which imports the command's module when the command runs."""

    def load(self) -> ComposedCommand:
        """Import the module of the command, and return the complete command."""
        name = self.name or ""
        function = "import_" if name == "import" else name.replace("-", "_")
        module = importlib.import_module(f"kassay.experiments.cli.commands.{function}")
        return ComposedCommand(name, getattr(module, function))

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, *rest, **extra)


class CommandTable(TyperGroup):
    """Typer command group of all commands, without importing their modules."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            name: _LazyCommand(name, short_help=text) for name, text in COMMANDS.items()
        }

    def format_commands(self, _context: Any, formatter: Any) -> None:
        """Write the commands of each purpose in a section, with aligned texts."""
        width = max(map(len, COMMANDS))
        for title, commands in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])
