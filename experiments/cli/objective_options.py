"""Command-line options for the objective and the constraints of a search."""

from dataclasses import dataclass
from typing import Annotated

import typer

from kassay.experiments.cli.option_checks import known_names
from kassay.experiments.planning.group_changes import find_member
from kassay.experiments.planning.planning_levels import ordered_levels, planning_levels
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.constraints import (
    Colocated,
    Constraint,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
)
from kassay.solver.objective import FURTHER_LEVELS, CrossRack, Level, Movement, Tolerance

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
    """Command-line options for the levels of the objective, and for constraints."""

    imbalance: ImbalanceMeasure = None
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="FRACTION",
            help="Maximum relative excess of imbalance over its minimum. A higher value can save "
            "moves.",
            show_default="0; plan and what-if: 0.02 if weights differ",
        ),
    ] = None
    level: Annotated[
        list[str] | None,
        typer.Option(
            callback=known_names("level", [*FURTHER_LEVELS, Movement.name]),
            help=f"Level to minimise after imbalance: {', '.join(FURTHER_LEVELS)}, movement. "
            "Repeatable; the levels are minimised in the given order. If movement is not "
            "given, movement comes directly after imbalance.",
            show_default=False,
        ),
    ] = None
    racks: Annotated[
        bool,
        typer.Option(
            "--racks",
            help="Minimise reads across racks before moves: --level cross_rack --level movement.",
        ),
    ] = False
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
            help="Topics, separated by commas. For each number N, the partitions N of these topics "
            "are assigned to the same member. Repeat the option for further sets of topics.",
            show_default=False,
        ),
    ] = None

    pin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC-N=MEMBER",
            help="Assign a partition to a member, given by its id, client id or host. Repeatable.",
            show_default=False,
        ),
    ] = None
    forbid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC[-N]=MEMBER",
            help="Do not assign a partition, or any partition of a topic, to this member. "
            "Repeatable.",
            show_default=False,
        ),
    ] = None

    def levels(self, group: Group) -> tuple[Level, ...]:
        """Return the levels of the objective, which are minimised in order."""
        tolerance = Tolerance(relative=self.tolerance or 0)
        return ordered_levels(
            group, measure=self.imbalance, tolerance=tolerance, further=self._further()
        )

    def planning_levels(self, group: Group) -> tuple[Level, ...]:
        """Return the levels of a plan, with a default tolerance if weights differ."""
        return planning_levels(
            group,
            measure=self.imbalance,
            tolerance=None if self.tolerance is None else Tolerance(relative=self.tolerance),
            further=self._further(),
        )

    def _further(self) -> list[Level]:
        names = [*([CrossRack.name, Movement.name] if self.racks else []), *(self.level or ())]
        return [
            Movement() if name == Movement.name else FURTHER_LEVELS[name]()
            for name in dict.fromkeys(names)
        ]

    def constraints(self, group: Group) -> tuple[Constraint, ...]:
        """Return the constraints that the options set, without the capacities of members."""
        constraints: list[Constraint] = [
            Colocated(tuple(names.split(","))) for names in self.colocate or ()
        ]
        if self.max_moves is not None:
            constraints.append(MaxMoves(self.max_moves))
        if self.max_partitions is not None:
            constraints.append(MaxPartitions(self.max_partitions))
        for text in self.pin or ():
            topic, number, member = _parse_placement(group, "--pin", text)
            if number is None:
                raise UsageError(f"--pin must be TOPIC-N=MEMBER, got {text!r}")
            constraints.append(Pinned(topic, number, member))
        for text in self.forbid or ():
            topic, number, member = _parse_placement(group, "--forbid", text)
            if number is not None and f"{topic}-{number}" in group.topic_table():
                raise InputError(
                    f"--forbid: '{topic}-{number}' is a topic of group {group.id!r}, and also "
                    f"partition {number} of topic {topic!r}; for the topic, forbid each of its "
                    f"partitions, such as {topic}-{number}-0"
                )
            constraints.append(Forbidden(member, topic, number))
        return tuple(constraints)


def _parse_placement(group: Group, option: str, text: str) -> tuple[str, int | None, str]:
    """Parse TOPIC-N=MEMBER or TOPIC=MEMBER to a topic, a partition or None, and a member id.

    The partition is None for all partitions of the topic.

    Topic names may contain dashes. A name that is both a topic and a partition of another
    topic denotes the partition.
    """
    name, separator, member_name = text.partition("=")
    if not separator or not name or not member_name:
        form = "TOPIC-N=MEMBER" if option == "--pin" else "TOPIC-N=MEMBER or TOPIC=MEMBER"
        raise UsageError(f"{option} must be {form}, got {text!r}")
    member = find_member(group, member_name).id
    topics = group.topic_table()
    topic, _, number = name.rpartition("-")
    if topic in topics and number.isdecimal():
        return topic, int(number), member
    if name in topics:
        return name, None, member
    raise InputError(f"{option}: group {group.id!r} has no topic {name!r}")
