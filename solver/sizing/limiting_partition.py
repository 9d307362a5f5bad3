"""Partition whose weight alone determines the lowest maximum load of a group."""

from dataclasses import dataclass, replace
from fractions import Fraction

from kassay.reference.model.assignment import Assignment, rejoin
from kassay.reference.model.group import Group, Topic, WeightSource
from kassay.reference.model.metrics import Measure
from kassay.solver.counting_bounds import makespan_bound
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance
from kassay.solver.problem import build_problem
from kassay.solver.solution import LevelValue, value_and_bound
from kassay.solver.solve import solve

_SPLIT_WORK = 2.0
"""Maximum work to solve the group with split partitions."""
_NOUNS = {WeightSource.RATE: "traffic", WeightSource.LAG: "lag", WeightSource.SIZE: "data"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitingPartition:
    """Heaviest partition of a group, if no assignment has a lower maximum load than its weight.

    Parameters
    ----------
    equal
        Number of further partitions with the same weight.
    total, members
        Total weight of all partitions, and number of members that share it.
    after_split
        Lowest maximum load if each partition of this weight is split in two of equal weight.
    """

    topic: str
    partition: int
    weight: int
    equal: int
    total: int
    members: int
    weight_source: WeightSource | None
    after_split: LevelValue

    def __str__(self) -> str:
        """Describe the lower limit of the maximum load, and the remedies, in one text."""
        noun = None if self.weight_source is None else _NOUNS.get(self.weight_source)
        ratio = float(Fraction(self.weight * self.members, self.total))
        carry = "carries" if self.equal == 1 else "carry"
        further = f" ({self.equal:,} more {carry} as much)" if self.equal else ""
        split = self.after_split
        them, their = ("them", "their") if self.equal else ("it", "its")
        member = "faster members" if self.equal else "a faster member"
        most = "" if split.gap == 0 else f"at most {split.value:,}, with the lower bound "
        return (
            f"partition {self.topic}-{self.partition} alone carries {self.weight:,}, "
            f"{self.weight / self.total:.0%} of the {noun or 'total weight'} and {ratio:.1f} times "
            f"the mean load{further}: no assignment has a lower maximum. Split "
            f"{their} keys, or give {them} {member}. With {their} keys split in two parts of equal "
            f"{noun or 'weight'}, the lowest maximum load is {most}{split.bound:,}."
        )

    def record(self) -> dict[str, object]:
        """Return the partition as a JSON object."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "weight": self.weight,
            "makespan_after_split": value_and_bound(self.after_split),
            "reason": str(self),
        }


def limiting_partition(
    group: Group, *, limits: SearchLimits = SearchLimits(), seed: int = 0
) -> LimitingPartition | None:
    """Return the partition whose weight is the lower bound on the maximum load.

    Return None if weights are equal, if speeds differ, or if another reason determines the bound,
    such as the mean load.

    Examples
    --------
    >>> from kassay.reference.model.group import Member
    >>> members = tuple(Member(id=id, subscription=("t",)) for id in ("a", "b"))
    >>> group = Group(topics=(Topic(name="t", partitions=3, weights=(8, 2, 2)),), members=members)
    >>> print(limiting_partition(group))
    partition t-0 alone carries 8, 67% of the total weight and 1.3 times the mean load: no ...
    """
    problem = build_problem(group)
    if not problem.group.is_weighted or not group.has_equal_speeds or not problem.member_count:
        return None
    heaviest = max(problem.weight.tolist(), default=0)
    total = problem.total
    if makespan_bound(problem) != heaviest or heaviest * problem.member_count <= total:
        return None
    found = [at for at, weight in enumerate(problem.weight.tolist()) if weight == heaviest]
    solution = solve(
        _split(group, heaviest),
        levels=(Imbalance(Measure.MAKESPAN),),
        limits=replace(limits, work=min(limits.work, _SPLIT_WORK)),
        seed=seed,
    )
    if solution.assignment is None:
        return None
    return LimitingPartition(
        topic=group.topics[problem.topic[found[0]]].name,
        partition=int(problem.number[found[0]]),
        weight=heaviest,
        equal=len(found) - 1,
        total=total,
        members=problem.member_count,
        weight_source=group.weight_source,
        after_split=solution.imbalance,
    )


def _split(group: Group, heaviest: int) -> Group:
    """Return the group without owners, with all heaviest partitions split in two."""
    topics = []
    for topic in group.topics:
        weights = [topic.weight(number) for number in range(topic.partitions)]
        halves = [weight // 2 for weight in weights if weight == heaviest]
        kept = [weight - weight // 2 if weight == heaviest else weight for weight in weights]
        topics.append(
            Topic(
                name=topic.name, partitions=topic.partitions + len(halves), weights=(*kept, *halves)
            )
        )
    return rejoin(replace(group, topics=tuple(topics)), Assignment({}))
