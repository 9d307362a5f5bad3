"""Options for the objective and the constraints of a group."""

from dataclasses import dataclass
from typing import Annotated

import typer

from kassay.experiments.cli.option_checks import known_names
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.constraints import Colocated, Constraint, MaxMoves, MaxPartitions
from kassay.solver.objective import FURTHER_LEVELS, Level, Tolerance, default_levels

ImbalanceMeasure = Annotated[
    Measure | None,
    typer.Option(
        "--imbalance",
        metavar="NAME",
        help=f"Imbalance measure to minimise: {', '.join(Measure)}.",
        show_default="sum_of_squares, or makespan if weights differ",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveOptions:
    """Options for levels and constraints. Without options, the default objective applies."""

    imbalance: ImbalanceMeasure = None
    tolerance: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="FRACTION",
            help="Maximum relative excess of imbalance over its minimum; more can save moves.",
        ),
    ] = 0.0
    level: Annotated[
        list[str] | None,
        typer.Option(
            callback=known_names("level", list(FURTHER_LEVELS)),
            help=f"Level minimised after movement, repeatable: {', '.join(FURTHER_LEVELS)}.",
            show_default=False,
        ),
    ] = None
    max_moves: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of moves.", show_default="no limit")
    ] = None
    max_partitions: Annotated[
        int | None,
        typer.Option(
            min=0, help="Maximum number of partitions per member.", show_default="no limit"
        ),
    ] = None
    colocate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC,...",
            help="Topics, separated by commas. Partitions of these topics with the same number get "
            "the same member. Repeatable.",
            show_default=False,
        ),
    ] = None

    def levels(self, group: Group) -> tuple[Level, ...]:
        """Return the levels in order. Raise UsageError if the tolerance does not apply."""
        tolerance = Tolerance(relative=self.tolerance)
        further = [FURTHER_LEVELS[name]() for name in self.level or ()]
        return (*default_levels(group, measure=self.imbalance, tolerance=tolerance), *further)

    def constraints(self) -> tuple[Constraint, ...]:
        """Return the constraints besides the capacities of the group."""
        constraints: list[Constraint] = [
            Colocated(tuple(names.split(","))) for names in self.colocate or ()
        ]
        if self.max_moves is not None:
            constraints.append(MaxMoves(self.max_moves))
        if self.max_partitions is not None:
            constraints.append(MaxPartitions(self.max_partitions))
        return tuple(constraints)
