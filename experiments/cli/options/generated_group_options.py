"""Command-line options for generated groups."""

from typing import Any

from kassay.experiments.cli.options.option_groups import option


def cases_option(default: int) -> Any:
    """Declare the number of generated groups."""
    return option(
        default,
        "Number of generated groups, divided evenly among the families. Families of fixed size "
        "are not counted: all their groups are included.",
        min=0,
    )
