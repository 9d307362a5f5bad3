"""Groups for plans, with all their assignments, enumerated without the code of the solver."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from threading import Event

from kassay import Group, MaxMoves, Member, SearchLimits, Topic
from kassay.reference.model.group import Assumed, Client, GroupStatus, Protocol, WeightSource
from kassay.solver.constraints import Forbidden, Pinned
from tests.notation import group as small_group

STOPPED = Event()
STOPPED.set()
X, Y = ("x",), ("y",)


def group(weights, owners, more="", racks=None, id="g", **changes) -> Group:
    """Return a group of one topic; ``owners`` has a letter per partition, or a hyphen."""
    ids = sorted({*owners, *more} - {"-"})
    settings = {name: changes.pop(name) for name in list(changes) if name in ids}
    owned = {name: [("t", at) for at, one in enumerate(owners) if one == name] for name in ids}
    members = (
        Member(name, ("t",), owned=tps, generation=1, **settings.get(name, {}))
        for name, tps in owned.items()
    )
    topic = Topic("t", len(weights), weights=tuple(weights), racks=racks)
    return replace(Group((topic,), tuple(members), id=id), **changes)


def mixed(topics, **members) -> Group:
    return replace(small_group(topics, **members), id="g")


@dataclass(frozen=True)
class Case:
    """Group with settings of a plan, and the assignments that its constraints permit."""

    group: Group
    settings: dict[str, object]
    permits: object = None  # function of the owner per partition, and of the number of moves

    @cached_property
    def partitions(self):
        return [(topic.name, at) for topic in self.group.topics for at in range(topic.partitions)]

    @cached_property
    def weights(self):
        topics = {topic.name: topic for topic in self.group.topics}
        return [topics[name].weight(at) for name, at in self.partitions]

    @cached_property
    def owners(self):
        held = {tuple(tp): one.id for one in self.group.members for tp in one.owned}
        return [held.get(tp) for tp in self.partitions]

    @cached_property
    def assignments(self):
        """All valid assignments: owner per partition, moves, relative maximum load, squares."""
        choices = [
            [one.id for one in self.group.members if name in one.subscription]
            for name, _ in self.partitions
        ]
        return [self.measured(list(owners)) for owners in product(*choices)]

    @cached_property
    def permitted(self):
        if self.permits is None:
            return self.assignments
        return [one for one in self.assignments if self.permits(one[0], one[1])]

    def measured(self, owners):
        loads = self.loads(owners)
        moves = sum(old not in (None, new) for old, new in zip(self.owners, owners, strict=True))
        return owners, moves, max(self.relative(loads).values()), self.squares(loads)

    def loads(self, owners):
        loads = dict.fromkeys([one.id for one in self.group.members], 0)
        for owner, weight in zip(owners, self.weights, strict=True):
            if owner is not None:
                loads[owner] += weight
        return loads

    def squares(self, loads):
        return sum(load * self.relative(loads)[name] for name, load in loads.items())

    def relative(self, loads):
        speeds = {one.id: one.speed for one in self.group.members}
        fastest = max(speeds.values())
        return {name: Fraction(load * fastest, speeds[name]) for name, load in loads.items()}

    def planned(self, result):
        held = {tuple(tp): name for name, tps in result.assignment.items() for tp in tps}
        return self.measured([held[tp] for tp in self.partitions])


SPEEDS = {"a": {"speed": 97}, "b": {"speed": 89}, "c": {"speed": 83}}
HOSTS = {"a": "h", "b": "h", "c": "i"}
TOPICS = {"assumed": (Assumed.TOPICS,)}
CASES = {
    "optimal": Case(group([1] * 4, "aabb"), {}),
    "uneven": Case(group([1] * 5, "aaaab"), {}),
    "uneven with a weight of three": Case(group([3] * 5, "aaaab"), {}),
    "pinned": Case(
        group([1] * 4, "aaab"),
        {"constraints": [Pinned("t", at, "a") for at in range(3)]},
        lambda owners, _: owners[:3] == ["a"] * 3,
    ),
    "forbidden": Case(
        group([1] * 4, "aabb"),
        {"constraints": [Forbidden("a", "t", 0)]},
        lambda owners, _: owners[0] != "a",
    ),
    "no moves": Case(
        group([1] * 4, "aaab"), {"constraints": [MaxMoves(0)]}, lambda _, moves: moves == 0
    ),
    "one move": Case(
        group([9, 7, 5, 4, 3], "aaaaa", more="bc"),
        {"constraints": [MaxMoves(1)]},
        lambda _, moves: moves <= 1,
    ),
    "one move of equal weight, mixed": Case(
        mixed("t:5 u:4 v:3", a="t | t-0..4", b="t v | v-0..2", c="u | u-0..3", d="u"),
        {"constraints": [MaxMoves(1)]},
        lambda _, moves: moves <= 1,
    ),
    "capacity": Case(
        group([1] * 6, "aaaabb", b={"capacity": 2}), {}, lambda owners, _: owners.count("b") <= 2
    ),
    "racks": Case(
        group([1] * 4, "bbaa", racks=(X, X, Y, Y), a={"rack": "x"}, b={"rack": "y"}),
        {"levels": ["imbalance", "cross_rack", "movement"]},
    ),
    "ignored racks": Case(
        group([1] * 4, "bbaa", racks=(X, X, Y, Y), a={"rack": "x"}, b={"rack": "y"}), {}
    ),
    "racks before imbalance": Case(
        group([1] * 6, "aaabbb", racks=(X, X, Y, Y, Y, Y), a={"rack": "x"}, b={"rack": "y"}),
        {"levels": ["cross_rack", "imbalance", "movement"]},
    ),
    "racks and pins": Case(
        group([1] * 6, "aabbbb", racks=(X, X, Y, Y, Y, Y), a={"rack": "x"}, b={"rack": "y"}),
        {"constraints": [Pinned("t", at, "b") for at in range(2, 6)]},
        lambda owners, _: owners[2:] == ["b"] * 4,
    ),
    "moves before imbalance": Case(group([1] * 4, "aaab"), {"levels": ["movement", "imbalance"]}),
    "hosts": Case(
        group([1] * 6, "aabbcc", **{at: {"client": Client(host=on)} for at, on in HOSTS.items()}),
        {},
    ),
    "single member": Case(group([1, 2, 3], "aaa"), {}),
    "no weight": Case(group([0, 0, 5], "aab"), {}),
    "without owners": Case(group([9, 5, 4, 3, 1], "a---b"), {}),
    "fewer partitions than members": Case(group([1, 1], "ab", more="cd"), {}),
    "two heavy partitions": Case(group([50, 50, 5, 5, 5, 5], "aabbcc"), {}),
    "heavy partition and pins": Case(
        group([50, 20, 20, 5, 5], "aabbb", more="c"),
        {"constraints": [Pinned("t", at, "b") for at in range(1, 5)]},
        lambda owners, _: owners[1:] == ["b"] * 4,
    ),
    "small gain": Case(group([200, 199, 1], "aba"), {"levels": ["makespan", "movement"]}),
    "too few partitions of a topic": Case(mixed("t:2 u:5", a="t u | u-0..4", b="t | t-0..1"), {}),
    "within two per cent": Case(group([100, 99, 1], "aab"), {}),
    "lag": Case(group([40, 30, 20, 1, 1], "aaabb", weight_source=WeightSource.LAG), {}),
    "speeds": Case(group([97, 89, 55, 13, 8, 8, 5], "aaaabbb", more="c", **SPEEDS), {}),
    "speeds and equal weights": Case(group([1] * 6, "aaaabb", more="c", **SPEEDS), {}),
    "no time": Case(group([9, 8, 7, 5, 3, 2], "aaabbb"), {"limits": SearchLimits(time=0)}),
    "stopped": Case(
        group([9, 8, 7, 5, 3, 2, 2], "aaaabbb", more="c"),
        {"limits": SearchLimits(time=5, stop=STOPPED)},
    ),
    "sticky": Case(group([1] * 6, "aaaabc", status=GroupStatus(assignor="cooperative-sticky")), {}),
    "reconciling": Case(
        group(
            [1] * 6,
            "aaaaaa",
            more="b",
            a={"target": [("t", 0), ("t", 1), ("t", 2)], "speed": 97},
            b={"target": [("t", 3), ("t", 4), ("t", 5)], "speed": 89},
            status=GroupStatus(state="Reconciling", protocol=Protocol.CONSUMER, assignor="uniform"),
        ),
        {},
    ),
    "assumed": Case(group([1] * 5, "aaaab", a=TOPICS, b=TOPICS), {}),
    "leximax": Case(
        group([9, 7, 5, 4, 3], "aaaaa", more="bc"), {"levels": ["leximax", "movement"]}
    ),
    "squares": Case(
        group([9, 7, 5, 4, 3], "aaaaa", more="bc"), {"levels": ["sum_of_squares", "movement"]}
    ),
}
