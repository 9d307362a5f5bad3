"""Optima of small groups by exhaustive search.

Independent of `solver`, and of `reference` except for the `Group` class: ownership, loads and
measures are computed here again, so that errors there are detected.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, lcm

from kassay.reference.model.group import Group

Loads = tuple[int, ...]
Placement = dict[tuple[str, int], str]  # partition -> member id

MEASURES: dict[str, Callable[[Loads], object]] = {
    "sum_of_squares": lambda loads: sum(x * x for x in loads),
    "makespan": lambda loads: max(loads, default=0),
    "spread": lambda loads: max(loads, default=0) - min(loads, default=0),
    "deviation": lambda loads: sum(abs(len(loads) * x - sum(loads)) for x in loads),
    "balance_score": lambda loads: sum(abs(x - y) for x in loads for y in loads) // 2,
    "leximax": lambda loads: tuple(sorted(loads, reverse=True)),
}


def hosts(group: Group) -> dict[str, list[str]]:
    """Return the participants of each host; a member without a host is a host of its own."""
    host = {m.id: (m.client.host, None if m.client.host else m.id) for m in group.members}
    table: dict[object, list[str]] = {}
    for member in participants(group):
        table.setdefault(host[member], []).append(member)
    return {repr(name): members for name, members in table.items()}


@dataclass(frozen=True)
class Units:
    """Members or hosts whose loads are compared, with speeds without a common divisor."""

    members: list[list[str]]
    speeds: list[int]

    @property
    def factors(self) -> list[int]:
        return [lcm(*self.speeds) // speed for speed in self.speeds]

    def value(self, measure: str, loads: Mapping[str, int]) -> object:
        """Return the imbalance of the loads of members by its definition."""
        vector = [sum(loads[member] for member in unit) for unit in self.members]
        relative = tuple(x * y for x, y in zip(vector, self.factors, strict=True))
        if measure == "sum_of_squares":
            return sum(x * y for x, y in zip(vector, relative, strict=True))
        if measure == "deviation":
            pairs = zip(vector, self.speeds, strict=True)
            return sum(abs(sum(self.speeds) * x - s * sum(vector)) for x, s in pairs)
        return MEASURES[measure](relative)


def units(group: Group, *, by_host: bool = False) -> Units:
    """Return the participants, or their hosts, as units."""
    speed = {member.id: member.speed for member in group.members}
    members = [[member] for member in participants(group)]
    if by_host:
        members = list(hosts(group).values())
    speeds = [sum(speed[member] for member in unit) for unit in members]
    divisor = gcd(*speeds) or 1
    return Units(members, [speed // divisor for speed in speeds])


def partitions_to_place(group: Group) -> list[tuple[str, int]]:
    """Return the partitions with subscribers."""
    consumed = {topic for member in group.members for topic in member.subscription}
    return [(t.name, p) for t in group.topics if t.name in consumed for p in range(t.partitions)]


def participants(group: Group) -> list[str]:
    """Return the members that subscribe to a topic with partitions."""
    sizes = {topic.name: topic.partitions for topic in group.topics}
    return [m.id for m in group.members if any(sizes.get(topic, 0) for topic in m.subscription)]


def weights(group: Group) -> dict[tuple[str, int], int]:
    return {
        (t.name, p): 1 if t.weights is None else t.weights[p]
        for t in group.topics
        for p in range(t.partitions)
    }


def owners(group: Group) -> dict[tuple[str, int], str]:
    """Return the current owners: valid, unshared claims of the highest generation."""
    claims: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for member in group.members:
        for topic, number in dict.fromkeys((tp[0], tp[1]) for tp in member.owned):
            claims.setdefault((topic, number), []).append((member.generation, member.id))
    subscription = {member.id: member.subscription for member in group.members}
    table = {}
    for tp in weights(group):
        best = max((generation for generation, _ in claims.get(tp, [])), default=None)
        holders = [member for generation, member in claims.get(tp, []) if generation == best]
        if len(holders) == 1 and tp[0] in subscription[holders[0]]:
            table[tp] = holders[0]
    return table


def every_placement(group: Group) -> Iterator[Placement]:
    """Yield every valid assignment."""
    tps = partitions_to_place(group)
    choices = [[m.id for m in group.members if topic in m.subscription] for topic, _ in tps]
    for chosen in product(*choices):
        yield dict(zip(tps, chosen, strict=True))


def by_member(group: Group, placement: Placement) -> dict[str, list[tuple[str, int]]]:
    return {m.id: [tp for tp, owner in placement.items() if owner == m.id] for m in group.members}


def loads_of(group: Group, placement: Placement) -> Loads:
    weight = weights(group)
    table = dict.fromkeys(participants(group), 0)
    for tp, member in placement.items():
        table[member] += weight[tp]
    return tuple(table.values())


def moves_of(group: Group, placement: Placement) -> int:
    owner = owners(group)
    return sum(tp in owner and owner[tp] != member for tp, member in placement.items())


def off_rack_of(group: Group, placement: Placement) -> int:
    """Return the number of partitions without a replica in the known rack of their member."""
    rack = {member.id: member.rack for member in group.members}
    replicas = {
        (topic.name, number): {name for name in row if name is not None}
        for topic in group.topics
        for number, row in enumerate(topic.racks or ())
    }
    return sum(
        rack[member] is not None and bool(replicas.get(tp)) and rack[member] not in replicas[tp]
        for tp, member in placement.items()
    )


def reachable(group: Group) -> dict[Loads, int]:
    """Return the load vectors of all valid assignments, with the minimum moves per vector.

    Load vectors are in the order of `participants`. Dynamic programming over the partitions,
    equivalent to trying all assignments.
    """
    rank = {member: index for index, member in enumerate(participants(group))}
    weight, owner = weights(group), owners(group)
    consumers = {
        t.name: [m.id for m in group.members if t.name in m.subscription] for t in group.topics
    }
    states: dict[Loads, int] = {(0,) * len(rank): 0}
    for tp in partitions_to_place(group):
        following: dict[Loads, int] = {}
        for loads, moves in states.items():
            for member in consumers[tp[0]]:
                at = rank[member]
                now = (*loads[:at], loads[at] + weight[tp], *loads[at + 1 :])
                cost = moves + (tp in owner and owner[tp] != member)
                if cost < following.get(now, cost + 1):
                    following[now] = cost
        states = following
    return states


def optimum(
    group: Group, measure: str = "sum_of_squares", *, slack: Callable[[int], int] = lambda x: x
) -> tuple[object, int]:
    """Return the minimum imbalance and the minimum moves among assignments that have it.

    ``slack`` maps the minimum imbalance to the limit of the second level.
    """
    value = MEASURES[measure]
    states = [(value(loads), moves) for loads, moves in reachable(group).items()]
    least = min(imbalance for imbalance, _ in states)
    most = least if isinstance(least, tuple) else slack(least)
    return least, min(moves for imbalance, moves in states if imbalance <= most)


def frontier(group: Group, measure: str = "sum_of_squares") -> list[tuple[int, object]]:
    """Return the non-dominated pairs (moves, imbalance), moves ascending."""
    value = MEASURES[measure]
    points: list[tuple[int, object]] = []
    for moves, imbalance in sorted((m, value(loads)) for loads, m in reachable(group).items()):
        if not points or imbalance < points[-1][1]:
            points.append((moves, imbalance))
    return points


def lexicographic_optimum(
    group: Group,
    values: Sequence[Callable[[Placement], object]],
    *,
    allowed: Callable[[Placement], bool] = lambda placement: True,
    slacks: Sequence[Callable[[int], int]] = (),
) -> tuple[object, ...] | None:
    """Return the lexicographic minimum of ``values`` over the allowed assignments, or None.

    ``slacks`` map the minimum of each value to the limit for the following values. Numbers are
    exact without them.
    """
    vectors = [
        tuple(value(placement) for value in values)
        for placement in every_placement(group)
        if allowed(placement)
    ]
    if not vectors:
        return None
    least: list[object] = []
    for index in range(len(values)):
        least.append(min(vector[index] for vector in vectors))
        is_exact = not slacks or isinstance(least[-1], tuple)
        limit = least[-1] if is_exact else slacks[index](least[-1])
        vectors = [vector for vector in vectors if vector[index] <= limit]
    return tuple(least)
