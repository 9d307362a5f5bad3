"""The planning report's content: one group, where it stands, where it could, how to go."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from experiments.compare import LIMITS, Limits, fewest_moves_within, stay
from experiments.planning.moves import Batch, Move, moves_between, schedule
from experiments.planning.scenarios import makespan_of
from experiments.rounds import Ending, settle
from reference.assignment import Assignment
from reference.assignors import ASSIGNORS
from reference.group import Group
from reference.metrics import MEASURES, loads, participants
from reference.metrics import movement as count_moves
from reference.ownership import NOBODY, ownership
from solver.explain import Explanation, explain
from solver.frontier import Frontier, frontier
from solver.members import Sizing, members_needed
from solver.resilience import Resilience, resilience
from solver.solution import Bounded, Solution
from solver.solve import solve

LEGACY = ("legacy-range", "legacy-roundrobin")
GROWTH = (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2))
EXPLAINABLE = 2_000
"""Chains are looked for in groups with at most so many partitions: each costs a search."""

ASIDE_SECONDS = 5.0
"""So long may it take to find how many of an assignor's moves were needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a group stands under one assignment.

    Parameters
    ----------
    loads
        Of every member that consumes anything.
    measures
        Every imbalance measure by its name.
    """

    loads: dict[str, int]
    measures: dict[str, int]

    @property
    def makespan(self) -> int:
        """Greatest load."""
        return max(self.loads.values(), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
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
    standing: Standing | None
    moves: int | None
    needed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """How many members keep today's best greatest load when traffic grows.

    Parameters
    ----------
    growth
        Factor on every weight.
    makespan
        Greatest load allowed, in today's units: the wish over the growth.
    sizing
        The number of members, and what is proven of it.
    """

    growth: Fraction
    makespan: int
    sizing: Sizing


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that the planning report says.

    Parameters
    ----------
    group
        The group today.
    today
        How it stands: every owned partition with its owner, those without one with the
        least loaded subscriber.
    unowned
        Partitions that nobody owns.
    idle
        Members that subscribe to no partition.
    optimum
        The least imbalance, then the fewest moves.
    then
        How the group stands with it.
    makespan
        Greatest load of the optimum, and what is proven of the least.
    moves, batches
        What changes hands, and in what order.
    frontier
        What each number of moves buys.
    reasons
        Chains of transfers from today to the optimum.
    alternatives
        What Kafka's assignors would do from here.
    needs
        Members needed at several rates of growth.
    resilience
        What the loss of any one member costs, once the plan is carried out.
    """

    group: Group
    today: Standing
    unowned: int
    idle: tuple[str, ...]
    optimum: Solution = field(repr=False)
    then: Standing
    makespan: Bounded
    moves: tuple[Move, ...]
    batches: tuple[Batch, ...]
    frontier: Frontier
    reasons: tuple[Explanation, ...]
    alternatives: tuple[Alternative, ...]
    needs: tuple[Need, ...]
    resilience: Resilience

    @property
    def assignment(self) -> Assignment:
        """Where the plan leads."""
        if self.optimum.assignment is None:
            raise LookupError("there is no assignment")
        return self.optimum.assignment

    @property
    def moved(self) -> int:
        """Owned partitions that change hands."""
        return sum(1 for move in self.moves if move.giver is not None)


def plan(
    group: Group,
    *,
    batch: int = 1,
    growth: Iterable[Fraction] = GROWTH,
    points: int = 25,
    limits: Limits = LIMITS,
    seed: int = 0,
) -> Plan:
    """Plan the way from a group as it is to the best it can be.

    Parameters
    ----------
    group
        The group today.
    batch
        Partitions that may wait for their new consumer at a time.
    growth
        Rates of growth to size the group for.
    points
        Points of the frontier, at most.
    limits
        What each search may use up.
    seed
        Of the searches.

    Raises
    ------
    LookupError
        If there is no assignment: no members, or capacities that admit none.

    Examples
    --------
    >>> from experiments.families import REMARKABLE
    >>> found = plan(REMARKABLE["E"].group)
    >>> found.today.makespan, found.makespan, found.moved
    (11, Bounded(value=10, bound=10, slack=0), 2)
    """
    optimum = solve(
        group, time_limit=limits.time, deterministic_limit=limits.deterministic, seed=seed
    )
    if optimum.assignment is None:
        raise LookupError("; ".join(optimum.conflict) or "no assignment was found in time")
    stayed = stay(group)
    then = _standing(group, optimum.assignment)
    makespan = makespan_of(group, optimum)
    active = participants(group)
    return Plan(
        group=group,
        today=_standing(group, stayed),
        unowned=_unowned(group),
        idle=tuple(member.id for member in group.members if member.id not in active),
        optimum=optimum,
        then=then,
        makespan=makespan or Bounded(0, 0),
        moves=moves_between(group, optimum.assignment),
        batches=schedule(group, optimum.assignment, most=batch),
        frontier=_frontier(group, points, limits, seed),
        reasons=explain(group, stayed) if group.partition_count <= EXPLAINABLE else (),
        alternatives=tuple(_alternatives(group, optimum, limits)),
        needs=tuple(_needs(group, then.makespan, growth, limits, seed)),
        resilience=resilience(
            group,
            optimum.assignment,
            time_limit=limits.time,
            deterministic_limit=limits.deterministic,
            seed=seed,
        ),
    )


def _standing(group: Group, assignment: Assignment) -> Standing:
    vector = loads(group, assignment)
    measured = {name: measure(tuple(vector.values())) for name, measure in MEASURES.items()}
    return Standing(loads=vector, measures={str(name): value for name, value in measured.items()})


def _unowned(group: Group) -> int:
    owners, subscribers = ownership(group).owners, group.subscribers()
    return sum(
        int((column == NOBODY).sum()) for topic, column in owners.items() if subscribers[topic]
    )


def _frontier(group: Group, points: int, limits: Limits, seed: int) -> Frontier:
    return frontier(
        group,
        most_points=points,
        time_limit=limits.time,
        deterministic_limit=limits.deterministic,
        seed=seed,
    )


def _alternatives(group: Group, optimum: Solution, limits: Limits) -> Iterable[Alternative]:
    for assignor in ASSIGNORS:
        if assignor in LEGACY:
            continue
        settled = settle(group, assignor)
        standing = moves = needed = None
        if settled.ending is Ending.OK and settled.assignment is not None:
            standing = _standing(group, settled.assignment)
            moves = count_moves(group, settled.assignment)
            needed = _needed(group, standing, optimum, limits)
        yield Alternative(
            assignor=assignor,
            ending=str(settled.ending),
            detail=settled.detail,
            rounds=settled.rounds,
            standing=standing,
            moves=moves,
            needed=needed,
        )


def _needed(group: Group, standing: Standing, optimum: Solution, limits: Limits) -> int | None:
    if optimum.imbalance.gap or optimum.movement.gap:
        return None
    imbalance = standing.measures[optimum.levels[0][0]]
    brief = replace(limits, time=min(limits.time, ASIDE_SECONDS))
    return fewest_moves_within(group, imbalance, optimum=optimum, limits=brief)


def _needs(
    group: Group, makespan: int, growth: Iterable[Fraction], limits: Limits, seed: int
) -> Iterable[Need]:
    for factor in growth:
        wish = int(makespan / factor)
        sizing = members_needed(
            group,
            makespan=wish,
            time_limit=limits.time,
            deterministic_limit=limits.deterministic,
            seed=seed,
        )
        yield Need(growth=factor, makespan=wish, sizing=sizing)
