"""Fewest moves over all rebalances of small streams, by definitions of the tests' own."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from random import Random

from ortools.sat.python import cp_model

from kassay.reference.model.group import Group, Member, Topic
from tests import brute_force

SUBSCRIPTIONS = ((), ("a",), ("b",), ("a", "b"))


def fewest_moves(
    groups: Sequence[Group], *, measure: str = "sum_of_squares", excess: Fraction = Fraction(0)
) -> int:
    """Return the fewest moves by comparison of all sequences of permitted assignments.

    The imbalance is at most the minimum, plus a relative excess.
    """
    owners = brute_force.owners(groups[0])
    costs = {frozenset(owners.items()): 0}
    for group in groups:
        following: dict[frozenset[tuple[tuple[str, int], str]], int] = {}
        for placement in _permitted(group, measure, excess):
            cost = min(
                moves + _moves(group, dict(past), placement) for past, moves in costs.items()
            )
            following[frozenset(placement.items())] = cost
        costs = following
    return min(costs.values())


def _permitted(group: Group, measure: str, excess: Fraction) -> list[brute_force.Placement]:
    placements = list(brute_force.every_placement(group))
    units, names = brute_force.units(group), brute_force.participants(group)
    values = [
        int(
            str(
                units.value(
                    measure, dict(zip(names, brute_force.loads_of(group, one), strict=True))
                )
            )
        )
        for one in placements
    ]
    most = int(min(values) * (1 + excess))
    return [one for one, value in zip(placements, values, strict=True) if value <= most]


def _moves(group: Group, past: brute_force.Placement, placement: brute_force.Placement) -> int:
    subscription = {member.id: member.subscription for member in group.members}
    return sum(
        past.get(tp, member) != member and tp[0] in subscription.get(past[tp], ())
        for tp, member in placement.items()
    )


def fewest_moves_by_integer_program(groups: Sequence[Group], *, most: int | None = None) -> int:
    """Return the fewest moves by one model of CP-SAT with a variable per partition and member.

    ``most`` limits the loads, instead of the minimum sum of squares.
    """
    model = cp_model.CpModel()
    past: dict[tuple[tuple[str, int], str], object] = dict.fromkeys(
        brute_force.owners(groups[0]).items(), 1
    )
    moves = []
    for group in groups:
        chosen = _add_group(model, group, most)
        for key in past.keys() & chosen.keys():
            left = model.new_bool_var("")
            model.add(left >= past[key] - chosen[key])
            moves.append(left)
        past = dict(chosen)
    model.minimize(sum(moves))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


def _add_group(
    model: cp_model.CpModel, group: Group, most: int | None
) -> dict[tuple[tuple[str, int], str], object]:
    chosen = {
        (tp, member.id): model.new_bool_var("")
        for tp in brute_force.partitions_to_place(group)
        for member in group.members
        if tp[0] in member.subscription
    }
    for tp in brute_force.partitions_to_place(group):
        model.add_exactly_one(var for (other, _), var in chosen.items() if other == tp)
    squares = []
    total = len(brute_force.partitions_to_place(group))
    for name in brute_force.participants(group):
        load = sum(var for (_, member), var in chosen.items() if member == name)
        if most is not None:
            model.add(load <= most)
            continue
        square = model.new_int_var(0, total * total, "")
        steps = range(total + 1)
        model.add_allowed_assignments([load, square], [(step, step * step) for step in steps])
        squares.append(square)
    if most is None:
        model.add(sum(squares) <= int(str(brute_force.optimum(group)[0])))
    return chosen


def random_stream(seed: int) -> list[Group]:
    """Return a stream of up to 5 members, 12 partitions and 6 rebalances, with first owners."""
    rng = Random(seed)
    names = [f"t{index}" for index in range(rng.randint(1, 4))]
    members = [f"m{index}" for index in range(rng.randint(2, 5))]
    sizes = {name: rng.randint(1, 12 // len(names)) for name in names}
    consumed = {member: _subscription(rng, names) for member in members}
    groups = []
    for at in range(rng.randint(2, 6)):
        for member in members:
            if rng.random() < 0.25:
                consumed[member] = _subscription(rng, names) if rng.random() < 0.6 else ()
        if rng.random() < 0.3:
            name = rng.choice(names)
            sizes[name] = rng.randint(0, 12 // len(names))
        present = [member for member in members if consumed[member]]
        topics = tuple(Topic(name=name, partitions=size) for name, size in sizes.items())
        owned: dict[str, list[tuple[str, int]]] = {member: [] for member in present}
        if at == 0 and present:
            for name, size in sizes.items():
                own = [member for member in present if name in consumed[member]]
                for number in range(size):
                    if own and rng.random() < 0.7:
                        owned[rng.choice(own)].append((name, number))
        groups.append(
            Group(
                id=f"{seed}/{at}",
                topics=topics,
                members=tuple(
                    Member(id=member, subscription=consumed[member], owned=tuple(owned[member]))
                    for member in present
                ),
            )
        )
    return groups


def churning_stream(seed: int, *, members: int, partitions: int, rebalances: int) -> list[Group]:
    """Return a stream in which members with random subscriptions leave and join."""
    rng = Random(seed)
    shares = [rng.paretovariate(1.2) for _ in range(6)]
    topics = tuple(
        Topic(name=f"t{at}", partitions=max(1, round(partitions * share / sum(shares))))
        for at, share in enumerate(shares)
    )
    names = [topic.name for topic in topics]
    consumed = {f"m{at}": _subscription(rng, names) for at in range(members)}
    groups = []
    for at in range(rebalances):
        if rng.random() < 0.5:
            del consumed[rng.choice([*consumed])]
        else:
            consumed[f"r{at}"] = _subscription(rng, names)
        own = tuple(Member(id=name, subscription=topics) for name, topics in consumed.items())
        groups.append(Group(topics=topics, members=own))
    return groups


def weighted_stream(seed: int, *, partitions: int, members: int, most: int = 9) -> list[Group]:
    """Return a random stream of small groups with weights and speeds, and with first owners."""
    rng = Random(f"weighted/{seed}")
    speeds = {f"m{at}": rng.choice((1, 1, 2, 3)) for at in range(members)}
    sizes = {"a": rng.randint(1, partitions - 1)}
    sizes["b"] = partitions - sizes["a"]
    weights = {name: [rng.randint(0, most) for _ in range(size)] for name, size in sizes.items()}
    groups: list[Group] = []
    for at in range(rng.randint(2, 4)):
        if at and rng.random() < 0.5:
            weights["a"] = [rng.randint(0, most) for _ in weights["a"]]
        own = [name for name in speeds if rng.random() < 0.8] or ["m0"]
        consumed = {name: rng.choice((("a", "b"), ("a", "b"), ("a",), ("b",))) for name in own}
        owned: dict[str, list[tuple[str, int]]] = {name: [] for name in own}
        for topic, size in sizes.items() if at == 0 else ():
            for number in range(size):
                subscribers = [name for name in own if topic in consumed[name]]
                if subscribers:
                    owned[rng.choice(subscribers)].append((topic, number))
        groups.append(
            Group(
                id=f"{seed}/{at}",
                topics=tuple(
                    Topic(name=name, partitions=len(row), weights=tuple(row))
                    for name, row in weights.items()
                ),
                members=tuple(
                    Member(
                        id=name,
                        subscription=consumed[name],
                        speed=speeds[name],
                        owned=tuple(owned[name]),
                    )
                    for name in own
                ),
            )
        )
    return groups


def _subscription(rng: Random, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if rng.random() < 0.6) or (rng.choice(names),)


def tiny_streams(
    sizes: Sequence[tuple[int, int]], members: int, sample: int | None = None
) -> list[list[Group]]:
    """Return all streams of topics ``a`` and ``b`` with given partitions at each rebalance.

    Streams that differ in the names of the members only are listed once. Each member may be
    absent, or subscribe to ``a``, ``b`` or both. ``sample`` is the size of a random sample.
    """
    histories = product(range(len(SUBSCRIPTIONS)), repeat=len(sizes))
    streams = [
        states
        for chosen in combinations_with_replacement(histories, members)
        if all(map(any, states := [*zip(*chosen, strict=True)]))
    ]
    if sample is not None:
        streams = Random(1).sample(streams, sample)
    return [[_group(*pair) for pair in zip(sizes, states, strict=True)] for states in streams]


def _group(sizes: tuple[int, int], state: Sequence[int]) -> Group:
    members = (
        Member(id=f"m{index}", subscription=SUBSCRIPTIONS[value])
        for index, value in enumerate(state)
        if value
    )
    topics = (Topic(name="a", partitions=sizes[0]), Topic(name="b", partitions=sizes[1]))
    return Group(topics=topics, members=tuple(members))
