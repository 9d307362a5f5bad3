"""What-if scenarios: the optimum of a group after changes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from time import perf_counter

from kassay.experiments.planning.group_changes import Change
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, loads, participants
from kassay.solver.limits import SearchLimits
from kassay.solver.sizing.resized_groups import with_valid_ownership
from kassay.solver.solution import LevelValue, Solution, Status, value_and_bound
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A changed group. Its name lists the changes, such as ``members +1, growth 1.5``."""

    name: str
    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """Optimal assignment of a scenario, and its status.

    Only consumed partitions and members with a consumed topic count. ``makespan`` and
    ``movement`` are None without an assignment; ``placed`` partitions have no owner;
    ``topics_without_subscribers`` have a subscriber in the current group only.
    """

    scenario: Scenario
    members: int
    partitions: int
    status: Status
    makespan: LevelValue | None
    movement: LevelValue | None
    placed: int
    topics_without_subscribers: tuple[str, ...]
    seconds: float
    solution: Solution = field(repr=False)

    def record(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        return {
            "scenario": self.scenario.name,
            "members": self.members,
            "partitions": self.partitions,
            "status": str(self.status),
            "makespan": value_and_bound(self.makespan),
            "movement": value_and_bound(self.movement),
            "placed": self.placed,
            "topics_without_subscribers": list(self.topics_without_subscribers),
            "seconds": round(self.seconds, 3),
        }


def scenarios(
    group: Group, alternatives: Iterable[Sequence[tuple[str, Change]]]
) -> Iterator[Scenario]:
    """Combine one alternative of each kind of change, in every combination.

    ``alternatives`` has the named changes per kind. The kinds apply in this order.

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
    current = with_valid_ownership(group)
    for combination in product(*alternatives):
        changed = reduce(lambda result, change: change[1](result), combination, current)
        yield Scenario(name=", ".join(name for name, _ in combination) or "current", group=changed)


def what_if(
    scenario: Scenario,
    *,
    before: Group | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> ScenarioResult:
    """Find the optimal assignment of a scenario. ``before`` is the unchanged group."""
    group = scenario.group
    begin = perf_counter()
    solution = solve(group, limits=limits, seed=seed)
    seconds = perf_counter() - begin
    subscribers = group.subscribers()
    partitions = sum(topic.partitions for topic in group.topics if subscribers[topic.name])
    owned = sum(len(member.owned) for member in with_valid_ownership(group).members)
    current = {} if before is None else before.subscribers()
    return ScenarioResult(
        scenario=scenario,
        members=len(participants(group)),
        partitions=partitions,
        status=solution.status,
        makespan=makespan_of(group, solution),
        movement=None if solution.assignment is None else solution.movement,
        placed=partitions - owned,
        topics_without_subscribers=tuple(
            topic for topic, members in current.items() if members and not subscribers.get(topic)
        ),
        seconds=seconds,
        solution=solution,
    )


def makespan_of(group: Group, solution: Solution) -> LevelValue | None:
    """Return the maximum load of a solution and its lower bound.

    With equal weights, minimum sum of squares implies minimum makespan (docs/problem.md).
    For any other measure the bound is the rounded-up mean load.
    """
    if solution.assignment is None:
        return None
    vector = loads(group, solution.assignment)
    value = max(vector.values(), default=0)
    if solution.imbalance.name == Measure.MAKESPAN:
        bound = solution.imbalance.bound
    elif solution.imbalance.gap == 0 and not group.is_weighted:
        bound = value
    else:
        bound = -(-sum(vector.values()) // max(1, len(vector)))
    return LevelValue("makespan", value, min(value, bound))
