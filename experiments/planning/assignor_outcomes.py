"""What Kafka's own assignors would make of a group from here."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kassay.experiments.compare import CaseLimits, fewest_moves_within
from kassay.experiments.implementations.convergence import Ending, run_until_stable
from kassay.experiments.planning.rack_locality import across_racks
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import MEASURES, loads
from kassay.reference.model.metrics import movement as count_moves
from kassay.solver.solution import Solution

LEGACY = ("legacy-range", "legacy-roundrobin")
ASIDE_SECONDS = 5.0
"""So long may it take to find how many of an assignor's moves were needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentState:
    """How a group stands under one assignment.

    Parameters
    ----------
    loads
        Of every member that consumes anything.
    measures
        Every imbalance measure by its name.
    across_racks
        Partitions read across racks; None for a group without racks.
    """

    loads: dict[str, int]
    measures: dict[str, int]
    across_racks: int | None

    @property
    def makespan(self) -> int:
        """Greatest load."""
        return max(self.loads.values(), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorOutcome:
    """What one of Kafka's assignors would make of the group from here.

    Parameters
    ----------
    assignor
        Its name.
    ending, detail
        How it ended, and what went wrong if anything did.
    rounds
        Rebalances until it is settled.
    standing
        How the group then stands; None if it did not end well.
    moves
        Owned partitions that change hands.
    needed
        Fewest moves to any assignment at most as imbalanced; None where not proven.
    """

    assignor: str
    ending: str
    detail: str | None
    rounds: int
    standing: CurrentState | None
    moves: int | None
    needed: int | None


def current_state(group: Group, assignment: Assignment) -> CurrentState:
    """Measure an assignment."""
    vector = loads(group, assignment)
    measured = {name: measure(tuple(vector.values())) for name, measure in MEASURES.items()}
    return CurrentState(
        loads=vector,
        measures={str(name): value for name, value in measured.items()},
        across_racks=across_racks(group, assignment),
    )


def assignor_outcomes(
    group: Group, optimum: Solution, limits: CaseLimits
) -> Iterator[AssignorOutcome]:
    """Yield what each of Kafka's assignors settles on, and what that costs."""
    for assignor in ASSIGNORS:
        if assignor in LEGACY:
            continue
        settled = run_until_stable(group, assignor)
        standing = moves = needed = None
        if settled.ending is Ending.OK and settled.assignment is not None:
            standing = current_state(group, settled.assignment)
            moves = count_moves(group, settled.assignment)
            needed = _needed(group, standing, optimum, limits)
        yield AssignorOutcome(
            assignor=assignor,
            ending=str(settled.ending),
            detail=settled.detail,
            rounds=settled.rounds,
            standing=standing,
            moves=moves,
            needed=needed,
        )


def _needed(
    group: Group, standing: CurrentState, optimum: Solution, limits: CaseLimits
) -> int | None:
    if optimum.imbalance.gap or optimum.movement.gap:
        return None
    imbalance = standing.measures[optimum.imbalance.name]
    brief = replace(limits, time=min(limits.time, ASIDE_SECONDS))
    return fewest_moves_within(group, imbalance, optimum=optimum, limits=brief)
