"""Write the groups and goals of ``vectors``: ``python -m tools.write_vectors``.

The minima are those of kassay's solver. The prices that prove them are computed here, and
`Check.java` checks them.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from kassay import Assignment, Group, movement
from kassay.experiments.study.families.all_families import FAMILIES, USUAL
from kassay.reference.documents.json_codec import assignment_document, group_document, parse_group
from kassay.reference.model.assignment import current_partitions, ownership
from kassay.reference.model.load_metrics import Measure, measures
from kassay.solver.objective import Imbalance, Movement, TopicSpread
from kassay.solver.solve import solve
from tests.goldens.cases import PINNED, read

FOLDER = Path(__file__).parents[1] / "vectors"
GROUPS = 300
_MAX_MEMBERS, _MAX_PARTITIONS = 12, 40
_IMBALANCE = Imbalance(Measure.SUM_OF_SQUARES)
GOALS = {"balance": (_IMBALANCE, Movement()), "spread": (TopicSpread(), _IMBALANCE, Movement())}


def candidates() -> Iterator[Group]:
    """Yield small groups: those of ``uniform2`` first, then those of seeded families."""
    for number, case in enumerate(read(PINNED.with_name("uniform2.jsonl.gz"))):
        yield replace(parse_group(case["problem"]), id=f"uniform2 {number} {case['scenario']}")
    for seed in range(200):
        for name in (one for one in USUAL if not FAMILIES[one].is_finite):
            yield FAMILIES[name].build(seed)


def is_small_and_valid(group: Group) -> bool:
    """Return whether a group is small and all its claims are valid."""
    claims = sum(len(member.owned) for member in group.members)
    names = {topic.name for topic in group.topics}
    return (
        len(group.members) <= _MAX_MEMBERS
        and 0 < group.partition_count <= _MAX_PARTITIONS
        and not group.is_weighted
        and ownership(group).owned_count == claims
        and all(names.issuperset(member.subscription) for member in group.members)
    )


class Limits(dict[tuple[Any, Any], int]):
    """Limits on price differences: ``limits[a, b]`` is the maximum of price(a) - price(b)."""

    def add(self, first: Any, second: Any, value: int) -> None:
        """Add a limit. The lowest limit of a pair applies."""
        self[first, second] = min(value, self.get((first, second), value))

    def between(self, first: Any, second: Any, *, weight: int, number: int) -> None:
        """Limit a price difference by the costs of the last unit and of one more unit."""
        self.add(first, second, weight * (2 * number + 1))
        if number:
            self.add(second, first, -weight * (2 * number - 1))

    def potentials(self) -> dict[Any, int]:
        """Return prices within all limits. Raise ValueError if there are none."""
        found = dict.fromkeys((node for edge in self for node in edge), 0)
        for _ in range(len(found) + 1):
            before = dict(found)
            for (first, second), value in self.items():
                found[first] = min(found[first], found[second] + value)
            if found == before:
                return found
        raise ValueError("no prices: the assignment is not optimal")


def prices(group: Group, assignment: Assignment, *, with_spread: bool) -> dict[str, Any]:
    """Return integer prices of members, and of topics at members; see vectors/README.md."""
    consumed = {name for member in group.members for name in member.subscription}
    square = sum(topic.partitions for topic in group.topics if topic.name in consumed) + 1
    spread = square * (square * square + 1) if with_spread else 0
    owned = {tp: one for one, tps in current_partitions(group).items() for tp in tps}
    assigned = {(tp.topic, tp.partition): one for one, tps in assignment.items() for tp in tps}
    counts = Counter((member, topic) for (topic, _), member in assigned.items())
    subscriptions = {member.id: member.subscription for member in group.members}
    limits, origin = Limits(), ""
    for member, topics in subscriptions.items():
        limits.between(member, origin, weight=square, number=len(assignment[member]))
        for topic in topics:
            number = counts[member, topic]
            limits.between((member, topic), member, weight=spread, number=number)
    for (topic, partition), member in assigned.items():
        for other in (one for one, topics in subscriptions.items() if topic in topics):
            costs = [int(owned.get((topic, partition), one) != one) for one in (other, member)]
            limits.add((member, topic), (other, topic), costs[0] - costs[1])
    found = limits.potentials()
    return {
        "members": {member: found[member] - found[origin] for member in subscriptions},
        "topics": {
            member: {topic: found[member, topic] - found[origin] for topic in topics}
            for member, topics in subscriptions.items()
        },
    }


def goal(group: Group, name: str) -> dict[str, Any]:
    """Solve a group for a goal, and return the minimum, an assignment and its prices."""
    solution = solve(group, levels=GOALS[name])
    assignment = solution.assignment
    if assignment is None or not solution.is_optimal:
        raise ValueError(f"group {group.id!r}: the optimum of goal {name} is not proven")
    spread = sum(
        number**2
        for partitions in assignment.values()
        for topic in partitions.topics
        if (number := sum(one == topic for one, _ in partitions))
    )
    squares = measures(group, assignment)[Measure.SUM_OF_SQUARES]
    return {
        "minimum": [spread, squares, movement(group, assignment)],
        "assignment": assignment_document(assignment),
        "prices": prices(group, assignment, with_spread=name == "spread"),
    }


def main() -> None:
    """Write ``groups.jsonl`` and ``goals.jsonl``."""
    groups: dict[str, Group] = {}
    for group in filter(is_small_and_valid, candidates()):
        if len(groups) < GROUPS:
            groups[str(group.id)] = group
    goals = (
        {"id": group.id, "goals": {name: goal(group, name) for name in GOALS}}
        for group in groups.values()
    )
    for name, documents in (("groups", map(group_document, groups.values())), ("goals", goals)):
        with (FOLDER / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for one in documents:
                file.write(json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
