"""What if: the best that a changed group can do, one scenario or many."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from time import perf_counter

from kassay.experiments.planning.group_changes import Change
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import loads, participants
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Measure
from kassay.solver.sizing.resized_groups import with_valid_ownership
from kassay.solver.solution import LevelValue, Solution, Status
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A group as it may become.

    Parameters
    ----------
    name
        What was changed, in words.
    group
        The group then.
    """

    name: str
    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """The optimum of a scenario.

    Parameters
    ----------
    scenario
        What may become.
    members, partitions
        Members that consume anything, and partitions that are consumed.
    status
        What the solution is.
    makespan
        Greatest load. The bound is what is proven of it.
    movement
        Fewest owned partitions that change hands on the way there.
    placed
        Partitions to place that nobody owns.
    unserved
        Topics that are consumed today and by nobody then.
    seconds
        Wall-clock time of the search.
    solution
        The solution itself.
    """

    scenario: Scenario
    members: int
    partitions: int
    status: Status
    makespan: LevelValue | None
    movement: LevelValue | None
    placed: int
    unserved: tuple[str, ...]
    seconds: float
    solution: Solution = field(repr=False)

    def record(self) -> dict[str, object]:
        """Return it as a line of a table, ready for JSON."""
        return {
            "scenario": self.scenario.name,
            "members": self.members,
            "partitions": self.partitions,
            "status": str(self.status),
            "makespan": _bounded(self.makespan),
            "movement": _bounded(self.movement),
            "placed": self.placed,
            "unserved": list(self.unserved),
            "seconds": round(self.seconds, 3),
        }


def scenarios(
    group: Group, alternatives: Iterable[Sequence[tuple[str, Change]]]
) -> Iterator[Scenario]:
    """Combine changes: one of each kind, in every combination, applied in order.

    Parameters
    ----------
    group
        The group today.
    alternatives
        For each kind of change the alternatives, each with its name. A kind with one
        alternative is a plain change, one with several a sweep.

    Examples
    --------
    >>> from functools import partial
    >>> from kassay.experiments.planning.group_changes import add_members
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),),
    ...     members=(Member(id="a", subscription=("t",)),),
    ... )
    >>> kinds = [[(f"members +{n}", partial(add_members, count=n)) for n in (0, 1, 3)]]
    >>> [(one.scenario.name, one.makespan.value) for one in map(what_if, scenarios(group, kinds))]
    [('members +0', 4), ('members +1', 2), ('members +3', 1)]
    """
    today = with_valid_ownership(group)
    for chosen in product(*alternatives):
        changed = reduce(lambda so_far, change: change[1](so_far), chosen, today)
        name = ", ".join(name for name, _ in chosen)
        yield Scenario(name=name or "today", group=changed)


def what_if(
    scenario: Scenario,
    *,
    before: Group | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> ScenarioResult:
    """Find the optimum of a scenario.

    Parameters
    ----------
    scenario
        What may become.
    before
        The group today, to say which topics nobody would consume any more.
    limits, seed
        As in `kassay.solver.solve`.
    """
    group = scenario.group
    begin = perf_counter()
    solution = solve(group, limits=limits, seed=seed)
    seconds = perf_counter() - begin
    subscribers = group.subscribers()
    consumed = [topic for topic in group.topics if subscribers[topic.name]]
    owned = sum(len(member.owned) for member in with_valid_ownership(group).members)
    partitions = sum(topic.partitions for topic in consumed)
    return ScenarioResult(
        scenario=scenario,
        members=len(participants(group)),
        partitions=partitions,
        status=solution.status,
        makespan=makespan_of(group, solution),
        movement=None if solution.assignment is None else solution.movement,
        placed=partitions - owned,
        unserved=_unserved(before, subscribers),
        seconds=seconds,
        solution=solution,
    )


def makespan_of(group: Group, solution: Solution) -> LevelValue | None:
    """Return the greatest load of a solution, and what its levels prove of the least.

    The least sum of squares of equal weights has the least makespan too (docs/problem.md);
    of any other imbalance only the mean load is a bound.
    """
    if solution.assignment is None:
        return None
    vector = loads(group, solution.assignment)
    value = max(vector.values(), default=0)
    measure = solution.imbalance.name
    if measure == Measure.MAKESPAN:
        return LevelValue("makespan", value, min(value, solution.imbalance.bound))
    if solution.imbalance.gap == 0 and not group.is_weighted:
        return LevelValue("makespan", value, value)
    return LevelValue(
        "makespan", value, min(value, -(-sum(vector.values()) // max(1, len(vector))))
    )


def _unserved(before: Group | None, subscribers: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    if before is None:
        return ()
    return tuple(
        name
        for name, members in before.subscribers().items()
        if members and not subscribers.get(name)
    )


def _bounded(value: LevelValue | None) -> dict[str, int] | None:
    return None if value is None else {"value": value.value, "bound": value.bound}
