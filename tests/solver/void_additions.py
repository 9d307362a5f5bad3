"""Medium groups, and additions to a call that its answer already meets."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import kassay
from kassay import Group, Member, Topic
from kassay.reference.model.group import NO_CLIENT, Client
from kassay.reference.model.load_metrics import Measure
from kassay.solver import objective
from kassay.solver.constraints import Constraint
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Level
from tests import brute_force

LIMITS = SearchLimits(work=0.005)
"""Limits that do not depend on the speed of the machine."""
FURTHER = (
    kassay.CrossRack(),
    kassay.TopicSpread(),
    kassay.MembersUsed(),
    objective.Colocation([("t0", "t1")]),
    objective.HostImbalance(Measure.MAKESPAN),
    kassay.Movement(objective.MovementCost.WEIGHT),
)


@dataclass(frozen=True)
class Call:
    """Arguments of a call of the solver."""

    group: Group
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...] = ()

    def solve(self, limits: SearchLimits) -> kassay.Solution:
        return kassay.solve(
            self.group, levels=self.levels, constraints=self.constraints, limits=limits
        )


def medium_call(seed: int, *, partitions: int = 130, members: int = 20) -> Call:
    """Return a call with a random group with weights up to 2**62, racks, speeds and hosts.

    Half of the calls have constraints that most assignments violate.
    """
    rng = random.Random(f"void/{seed}")
    bits, count = rng.choice((10, 30, 50, 54, 58, 62)), rng.randint(2, members)
    sizes = [rng.randint(4, partitions // 2), rng.randint(7, partitions // 2)]
    racked, timed, hosted = (rng.random() < share for share in (0.5, 0.3, 0.3))
    topics = tuple(
        Topic(
            name=f"t{at}",
            partitions=size,
            weights=tuple(rng.randint(1, 2**bits) for _ in range(size)),
            racks=tuple((f"r{rng.randrange(3)}",) for _ in range(size)) if racked else None,
        )
        for at, size in enumerate(sizes)
    )
    owned: list[list[tuple[str, int]]] = [[] for _ in range(count)]
    for topic in topics:
        for number in range(topic.partitions):
            owned[rng.randrange(count)].append((topic.name, number))
    crew = tuple(
        Member(
            id=f"c{at}",
            subscription=("t0", "t1"),
            owned=own,
            generation=1,
            rack=f"r{at % 3}" if racked else None,
            speed=rng.choice((1, 2, 3)) if timed else 1,
            client=Client(host=f"h{at // 2}") if hosted else NO_CLIENT,
        )
        for at, own in enumerate(owned)
    )
    measure = rng.choice((Measure.MAKESPAN, Measure.MAKESPAN, Measure.SUM_OF_SQUARES))
    levels = (kassay.Imbalance(measure), kassay.Movement())
    rules: tuple[Constraint, ...] = ()
    if rng.random() < 0.5:
        rules = (
            kassay.MaxMoves(sum(sizes) // 2),
            kassay.Pinned("t0", 0, "c0"),
            kassay.Separated((("t0", 1), ("t1", 1))),
        )[rng.randrange(3) :]
    return Call(Group(topics=topics, members=crew), levels, rules)


def void_additions(call: Call, answer: kassay.Solution, seed: int) -> Iterator[Call]:
    """Yield calls with one more constraint or level, or a looser tolerance."""
    assert answer.assignment is not None
    rng = random.Random(seed)
    group = call.group
    placement = {(tp[0], tp[1]): m for m, tps in answer.assignment.items() for tp in tps}
    lists = brute_force.by_member(group, placement)
    weight = brute_force.weights(group)
    loads = {member: sum(weight[tp] for tp in tps) for member, tps in lists.items()}
    member = rng.choice(list(lists))
    other = next(name for name in lists if name != member)
    (topic, number), holder = rng.choice(list(placement.items()))
    apart = [tps[0] for tps in lists.values() if tps][:3]
    rules: list[Constraint] = [
        kassay.Capacity(max(loads.values())),
        kassay.Capacity(loads[member], member),
        kassay.MaxPartitions(max(map(len, lists.values()))),
        kassay.MaxMoves(brute_force.moves_of(group, placement)),
        kassay.Pinned(topic, number, holder),
        kassay.Forbidden(other if holder == member else member, topic, number),
        kassay.Separated(tuple(apart)),
    ]
    together = [n for t, n in placement if t == "t0" and placement.get(("t1", n)) == holder]
    if all(placement["t0", n] == placement["t1", n] for n in together) and not together:
        rules.append(kassay.Colocated(("t0",)))
    yield from (replace(call, constraints=(*call.constraints, rule)) for rule in rules)
    yield replace(call, constraints=(*call.constraints, *rules))
    yield from (replace(call, levels=(*call.levels, level)) for level in FURTHER)
    first, *rest = call.levels
    loose = replace(first, tolerance=kassay.Tolerance(relative=0.02))
    yield replace(call, levels=(loose, *rest))
