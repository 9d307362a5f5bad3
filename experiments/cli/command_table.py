"""Table of the commands, which loads the module of a command when the command runs."""

import importlib
from typing import Any

from typer.core import TyperCommand, TyperGroup

from kassay.experiments.cli.options.option_groups import ComposedCommand

COMMANDS = {
    "import": "Convert captures of Kafka's tools, or groups of a cluster, to group documents.",
    "assign": "Assign partitions with one of Kafka's assignors or a custom assignor.",
    "solve": "Find the assignment with the fewest moves among those with minimum imbalance.",
    "compare": "Compare assignors with the proven optimum.",
    "explain": "Explain why an assignment is not optimal, as chains of transfers.",
    "frontier": "Find the minimum imbalance for each number of moves.",
    "trajectory": "Find the fewest moves over a sequence of rebalances.",
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
