"""Compare the lowest loads within several constraints with a simple local search.

``python -m benchmarks.several_constraints --groups 60 --seconds 5`` gives both the same time limit
and prints one line per group, then a summary. The groups are those of `typical_groups`, with three
topics, mixed subscriptions, and up to five constraints; members of every second group have
different speeds. The local search shares no code with the solver.
"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import lcm

from benchmarks.typical_groups import Case, random_groups
from kassay import Group, Topic
from kassay.reference.model.load_metrics import Measure
from kassay.solver.constraints import (
    Capacity,
    Colocated,
    Constraint,
    Forbidden,
    MaxPartitions,
    Separated,
)
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.solve import solve

_NAMES = ("a", "b", "c")
_MAX_FAILURES = 30_000
"""Number of proposals without a lower imbalance before the local search starts again."""
_WORSE = 0.001
"""Share by which a worse value counts in the summary."""


def cases(count: int) -> Iterator[Case]:
    """Yield the seeded groups with measure and constraints."""
    for seed, drawn in enumerate(random_groups(count)):
        rng = random.Random(1_000 + seed)
        group = _three_topics(rng, drawn, has_speeds=bool(seed % 2))
        rules = _constraints(rng, group)
        measure = rng.choice((Measure.MAKESPAN, Measure.SUM_OF_SQUARES))
        yield Case(
            " ".join(type(rule).__name__ for rule in rules), group, (Imbalance(measure),), rules
        )


def _three_topics(rng: random.Random, group: Group, *, has_speeds: bool) -> Group:
    """Split the topic in three; every second member leaves one of them out with chance one half."""
    (topic,) = group.topics
    third, weights = topic.partitions // 3, topic.weights or ()
    ends = [0, *accumulate((third, third, topic.partitions - 2 * third))]
    topics = tuple(
        Topic(name, end - start, weights=weights[start:end])
        for name, (start, end) in zip(_NAMES, pairwise(ends), strict=True)
    )
    members = []
    for at, member in enumerate(group.members):
        names = _NAMES if at % 2 == 0 or rng.random() < 0.5 else tuple(rng.sample(_NAMES, 2))
        placed = ((min(2, number // third), number) for _, number in member.owned)
        owned = [
            (_NAMES[part], number - part * third)
            for part, number in placed
            if _NAMES[part] in names
        ]
        speed = rng.choice((1, 2, 3)) if has_speeds else 1
        members.append(replace(member, subscription=names, owned=owned, speed=speed))
    return Group(topics, tuple(members), id=group.id)


def _constraints(rng: random.Random, group: Group) -> tuple[Constraint, ...]:
    first, second = (member.id for member in group.members[:2])
    count, size = len(group.members), group.partition_count
    total = sum(sum(topic.weights or ()) for topic in group.topics)
    apart = rng.sample(range(group.topics[0].partitions), 3)
    drawn: tuple[tuple[float, Constraint], ...] = (
        (0.5, MaxPartitions(size * 13 // (10 * count) + 1)),
        (0.5, Separated(tuple(("a", number) for number in apart))),
        (0.5, Colocated(("a", "b"))),
        (0.4, Forbidden(first, "b")),
        (0.4, Capacity(total * 13 // (10 * count), second)),
    )
    return tuple(rule for chance, rule in drawn if rng.random() < chance)


class LocalSearch:
    """Random moves and exchanges of sets of partitions that lower the imbalance."""

    def __init__(self, case: Case, seed: int) -> None:
        group, self.rng = case.group, random.Random(seed)
        self.is_makespan = case.levels[0] == Imbalance(Measure.MAKESPAN)
        members = range(len(group.members))
        names = [member.id for member in group.members]
        speeds = [member.speed for member in group.members]
        self.factors = [lcm(*speeds) // speed for speed in speeds]
        kinds = {type(rule): rule for rule in case.rules}
        joined = ("a", "b") if Colocated in kinds else ()
        sets: dict[tuple[str, int], list[tuple[str, int]]] = {}
        weights: dict[tuple[str, int], int] = {}
        for topic in group.topics:
            for number in range(topic.partitions):
                key = (joined[0] if topic.name in joined else topic.name, number)
                sets.setdefault(key, []).append((topic.name, number))
                weights[key] = weights.get(key, 0) + topic.weight(number)
        self.weights, self.sizes = [*weights.values()], [*map(len, sets.values())]
        excluded = kinds.get(Forbidden)
        self.allowed = [
            [
                at
                for at in members
                if all(name in group.members[at].subscription for name, _ in one)
                and not (excluded and excluded.member == names[at] and excluded.topic in dict(one))
            ]
            for one in sets.values()
        ]
        most = kinds.get(MaxPartitions)
        self.most = most.limit if most else group.partition_count
        capacity = kinds.get(Capacity)
        unlimited = sum(self.weights)
        self.room = [
            capacity.limit if capacity and names[at] == capacity.member else unlimited
            for at in members
        ]
        apart = {tuple(tp) for tp in kinds[Separated].partitions} if Separated in kinds else set()
        self.best: list[int] = []  # member of each set
        self.apart = [int(any(tp in apart for tp in one)) for one in sets.values()]

    def lowest(self, seconds: float) -> int | None:
        """Return the lowest imbalance found in a time; None if no start meets the constraints."""
        end, lowest = time.monotonic() + seconds, None
        while time.monotonic() < end:
            if not self._start():
                continue
            self._descend(end)
            value = self._imbalance(range(len(self.loads)), self.loads)
            if lowest is None or value < lowest:
                lowest, self.best = value, [*self.member]
        return lowest

    def _start(self) -> bool:
        """Place each set on the permitted member with the lowest load, the heaviest sets first."""
        count = len(self.factors)
        self.loads, self.counts, self.alone = [0] * count, [0] * count, [0] * count
        self.member = [-1] * len(self.weights)
        keys = [
            (-apart, -weight * self.rng.uniform(0.7, 1.3))
            for apart, weight in zip(self.apart, self.weights, strict=True)
        ]
        for one in sorted(range(len(keys)), key=keys.__getitem__):
            found = [
                at
                for at in self.allowed[one]
                if self._fits(at, self.weights[one], self.sizes[one], self.apart[one])
            ]
            if not found:
                return False
            at = min(found, key=lambda at: (self.loads[at] + self.weights[one]) * self.factors[at])
            self._give(one, at)
        return True

    def _fits(self, at: int, weight: int, size: int, apart: int) -> bool:
        return (
            self.loads[at] + weight <= self.room[at]
            and self.counts[at] + size <= self.most
            and self.alone[at] + apart <= 1
        )

    def _give(self, one: int, at: int) -> None:
        for member, sign in ((self.member[one], -1), (at, 1)):
            if member >= 0:
                self.loads[member] += sign * self.weights[one]
                self.counts[member] += sign * self.sizes[one]
                self.alone[member] += sign * self.apart[one]
        self.member[one] = at

    def _descend(self, end: float) -> None:
        """Accept moves and exchanges that lower the imbalance of two members."""
        failures, sets = 0, range(len(self.weights))
        while failures < _MAX_FAILURES and time.monotonic() < end:
            failures += 1
            one = self.rng.choice(sets)
            if self.is_makespan and self.rng.random() < 0.8:
                top = max(range(len(self.loads)), key=lambda at: self.loads[at] * self.factors[at])
                one = self.rng.choice([each for each in sets if self.member[each] == top])
            giver = self.member[one]
            if self.rng.random() < 0.4:
                other, taker = None, self.rng.choice(self.allowed[one])
            else:
                other = self.rng.choice(sets)
                taker = self.member[other]
                if giver not in self.allowed[other] or taker not in self.allowed[one]:
                    continue
            if giver != taker and self._is_lower(one, other, giver, taker):
                self._give(one, taker)
                if other is not None:
                    self._give(other, giver)
                failures = 0

    def _is_lower(self, one: int, other: int | None, giver: int, taker: int) -> bool:
        """Return whether a move or an exchange is permitted and lowers the imbalance."""
        moved = [
            values[one] - (0 if other is None else values[other])
            for values in (self.weights, self.sizes, self.apart)
        ]
        if not self._fits(taker, *moved) or not self._fits(giver, *(-each for each in moved)):
            return False
        pair = (giver, taker)
        before = [self.loads[at] for at in pair]
        after = [before[0] - moved[0], before[1] + moved[0]]
        return self._imbalance(pair, after) < self._imbalance(pair, before)

    def _imbalance(self, members: Sequence[int], loads: Sequence[int]) -> int:
        """Return the makespan, or the sum of the products of load and relative load."""
        relative = [load * self.factors[at] for at, load in zip(members, loads, strict=True)]
        if self.is_makespan:
            return max(relative)
        return sum(load * each for load, each in zip(loads, relative, strict=True))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison, print its lines and its summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=60, help="number of groups")
    parser.add_argument("--first", type=int, default=0, help="number of the first group")
    parser.add_argument("--seconds", type=float, default=5.0, help="time limit per group")
    options = parser.parse_args(arguments)
    excesses = []
    for number, case in enumerate(cases(options.groups)):
        if number < options.first:
            continue
        judged = LocalSearch(case, number).lowest(options.seconds)
        found = solve(
            case.group,
            levels=(*case.levels, Movement()),
            constraints=case.rules,
            limits=SearchLimits(time=options.seconds),
        )
        if found.assignment is None or judged is None:
            print(f"{case.group.id}, {case.kind}: {found.status}, local search: {judged}")
            continue
        level = found.levels[0]
        excesses.append(level.value / judged - 1)
        print(
            f"{case.group.id}, {level.name}, {case.kind}: {level.value / judged - 1:+.4%} beside "
            f"the local search, {level.value / max(1, level.bound) - 1:.4%} above the bound",
            flush=True,
        )
    print(
        f"{len(excesses)} groups: {sum(one < -_WORSE for one in excesses)} lower, "
        f"{sum(one > _WORSE for one in excesses)} higher by more than {_WORSE:.1%}, "
        f"at most {max(excesses, default=0):+.3%}"
    )


if __name__ == "__main__":
    main()
