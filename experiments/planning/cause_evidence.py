"""Compute the values of a group that show the causes of its imbalance."""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from kassay.experiments.comparison.compare import keep_owners
from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.planning.assignor_outcomes import AssignorOutcome, assignment_metrics
from kassay.experiments.planning.effective_actions import FACTORS
from kassay.experiments.planning.identify_assignor import (
    IdentifiedAssignor,
    Implementation,
    identify_assignor,
)
from kassay.experiments.planning.plan_result import unowned_partitions
from kassay.reference.assignors import kafka_name
from kassay.reference.documents.files import read_data_file
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.display import count_of
from kassay.reference.model.group import NO_WINDOWS, Group, Member, Protocol
from kassay.reference.model.load_metrics import Measure, loads, measures
from kassay.solver.capacity_planning import LimitingPartition
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Level, Movement, default_measure
from kassay.solver.solve import solve

_MAX_PARTITIONS = 10_000
"""Partitions above which the tests of causes run no assignor, as a run takes seconds."""
_ALIASES = {"RoundRobinAssigner": "roundrobin"}
"""Ports by the names of equal assignors in other client libraries."""
RANGES = ("range", "server-range")
CIRCULAR = (*RANGES, "roundrobin")
"""Assignors that ignore owned partitions; their results do not depend on the current owners."""


class CauseKind(StrEnum):
    """Kind of cause of an imbalance, such as mixed subscriptions."""

    FAILED_ASSIGNOR = "failed-assignor"
    LIBRARY_CLAIMS = "library-claims"
    INCOMPLETE_REBALANCE = "incomplete-rebalance"
    NO_OWNER = "no-owner"
    PENDING_REBALANCE = "pending-rebalance"
    HEAVY_PARTITION = "heavy-partition"
    LIMITED_MEMBERS = "limited-members"
    SURPLUS_MEMBERS = "surplus-members"
    WEIGHTS_IGNORED = "weights-ignored"
    RACKS = "racks"
    RANGE_REMAINDERS = "range-remainders"
    MIXED_SUBSCRIPTIONS = "mixed-subscriptions"
    STATIC_MEMBERS = "static-members"
    CONTRADICTION = "contradiction"
    LOCAL_OPTIMUM = "local-optimum"
    TOPICS_IGNORED = "topics-ignored"
    LAG_ON_FEW_MEMBERS = "lag-on-few-members"
    UNEVEN_TOPIC = "uneven-topic"


_REMEDIES, _SHORT_REMEDIES = (
    {row[0]: row[column] for row in read_data_file(__package__, "remedies.txt")}
    for column in (1, 2)
)


@dataclass(frozen=True, slots=True)
class Cause:
    """Cause of the imbalance of a group, with a sentence that explains it.

    ``is_slight`` states that the planned loads are lower by at most the tolerance of `decide`.
    """

    kind: CauseKind
    text: str
    is_slight: bool = False

    @property
    def remedy(self) -> str:
        """Return the sentence that advises what to do about causes of this kind."""
        text = _REMEDIES[self.kind]
        if not self.is_slight:
            return text
        check, is_doubtful, _ = text.partition("; if they are equal")
        return check if is_doubtful else _REMEDIES["slight"]

    @property
    def short_remedy(self) -> str:
        """Return the advice of `remedy` in at most four words."""
        is_nothing = self.remedy == _REMEDIES["slight"]
        return _SHORT_REMEDIES["slight" if is_nothing else self.kind]

    def __str__(self) -> str:
        return self.text

    def record(self) -> dict[str, str]:
        """Return the cause as a JSON object."""
        return {"kind": str(self.kind), "text": self.text}


@dataclass(frozen=True)
class Evidence:
    """Group with its current and planned assignment, and values for the tests of causes."""

    group: Group
    planned: Assignment
    levels: tuple[Level, ...]
    limiting: LimitingPartition | None
    outcomes: tuple[AssignorOutcome, ...]
    limits: SearchLimits

    @cached_property
    def current(self) -> Assignment:
        """Return the current assignment, with unowned ones on the least loaded subscribers."""
        return keep_owners(self.group)

    @cached_property
    def measure(self) -> Measure:
        """Return the measure of imbalance for the current and the planned assignment."""
        return default_measure(self.group)

    def value(self, assignment: Assignment) -> int:
        """Return the imbalance of an assignment, as `measure` defines it."""
        return measures(self.group, assignment)[self.measure]

    @cached_property
    def unowned(self) -> int:
        """Return the number of consumed partitions without an owner."""
        return sum(map(len, unowned_partitions(self.group).values()))

    @cached_property
    def ideal(self) -> int:
        """Return the imbalance of an assignment that divides all load evenly.

        If speeds differ, this is the imbalance of the plan.
        """
        if not self.group.has_equal_speeds:
            return self.value(self.planned)
        total, members = sum(loads(self.group, self.planned).values()), len(self.group.members)
        if self.measure is Measure.MAKESPAN:
            return -(-total // members)
        weight = self.group.common_weight or 1
        low, rest = divmod(total // weight, members)
        return weight**2 * (low**2 * (members - rest) + (low + 1) ** 2 * rest)

    @cached_property
    def counted(self) -> Group:
        """Return the group without weights, speeds and capacities."""
        return replace(
            self.group,
            topics=tuple(
                replace(topic, weights=None, profiles=None) for topic in self.group.topics
            ),
            members=tuple(replace(one, speed=1, capacity=None) for one in self.group.members),
            windows=NO_WINDOWS,
        )

    @property
    def is_weighted(self) -> bool:
        """Return whether the plan uses weights or speeds that assignors ignore."""
        return self.group.is_weighted or not self.group.has_equal_speeds

    @cached_property
    def is_slight(self) -> bool:
        """Return whether the plan only lowers the loads, by at most the tolerance of `decide`."""
        if self.unowned or not all(isinstance(one, Imbalance | Movement) for one in self.levels):
            return False
        both = (assignment_metrics(self.group, one) for one in (self.current, self.planned))
        now, then = (one.measures for one in both)
        return all(now[name] <= factor * then[name] for name, factor in FACTORS.items())

    def squares(self, assignment: Assignment) -> int:
        """Return the sum of the squared partition counts of the members."""
        return measures(self.counted, assignment)[Measure.SUM_OF_SQUARES]

    @cached_property
    def balanced(self) -> Assignment | None:
        """Return the assignment with the most even partition counts, or None if none is found."""
        return solve(self.counted, limits=self.limits).assignment

    @cached_property
    def has_even_counts(self) -> bool:
        """Return whether no known assignment has more even partition counts than now."""
        best = self.balanced
        return best is None or self.squares(best) >= self.squares(self.current)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Return the current partition count of each member that consumes a topic."""
        return loads(self.counted, self.current)

    @cached_property
    def topics(self) -> dict[str, tuple[Member, ...]]:
        """Return the subscribers of each topic that has subscribers."""
        members = self.group.members
        return {
            topic: tuple(members[index] for index in found)
            for topic, found in self.group.subscribers().items()
            if found
        }

    @cached_property
    def has_equal_subscriptions(self) -> bool:
        """Return whether all members subscribe to all topics."""
        return all(len(found) == len(self.group.members) for found in self.topics.values())

    @cached_property
    def own(self) -> IdentifiedAssignor:
        """Return the assignor that the group uses, as far as the source shows it."""
        return identify_assignor(self.group)

    @cached_property
    def port(self) -> str | None:
        """Return the port that gives the results of the group's assignor, or None if unknown."""
        if self.own.name is not None:
            return _ALIASES.get(self.own.name, self.own.port)
        broker = self.group.status.protocol is Protocol.CONSUMER
        names = ("server-range",) if broker else ("range", "roundrobin")
        return next((name for name in names if self._has_result_of(name)), None)

    def _has_result_of(self, name: str) -> bool:
        result = self.run(name)
        return result is not None and all(
            set(result.get(one.id, ())) == set(self.current.get(one.id, ()))
            for one in self.group.members
        )

    def run(self, name: str) -> Assignment | None:
        """Return the stable assignment of a port, or None if it fails or is too slow."""
        return None if self.is_large else run_until_stable(self.group, name).assignment

    @property
    def is_large(self) -> bool:
        """Return whether assignors are too slow for the group, or the search was stopped."""
        return self.group.partition_count > _MAX_PARTITIONS or self.limits.is_stopped

    @cached_property
    def own_result(self) -> Assignment | None:
        """Return the assignment after a rebalance with the group's assignor, or None.

        None for a sticky assignor of another client library, as kassay's ports are those of Java.
        """
        is_other = self.own.implementation is Implementation.OTHER
        if self.port is None or (is_other and self.port not in CIRCULAR):
            return None
        return self.run(self.port)

    def explains(self, assignment: Assignment | None) -> bool:
        """Return whether an assignment removes at least half of the avoidable imbalance.

        It must also have more even partition counts than the current assignment.
        """
        if assignment is None or self.squares(assignment) >= self.squares(self.current):
            return False
        now = self.value(self.current)
        return 2 * (now - self.value(assignment)) >= now - self.value(self.planned)

    @cached_property
    def rebalance_helps(self) -> bool:
        """Return whether the group's assignor removes at least half of the avoidable imbalance."""
        return self.explains(self.own_result)

    @cached_property
    def has_own_shape(self) -> bool:
        """Return whether the group's assignor gives the current partition counts, in any order."""
        result = self.own_result
        if result is None:
            return False
        shape = loads(self.counted, result)
        return sorted(shape.values()) == sorted(self.counts.values())

    @property
    def name(self) -> str:
        """Return the name that Kafka's tools show for the group's assignor."""
        return kafka_name(self.own.name or self.port or "")

    def extremes(self) -> str:
        """Describe the members with the most and the fewest partitions."""
        high = max(self.counts, key=lambda one: self.counts[one])
        low = min(self.counts, key=lambda one: self.counts[one])
        return f"{high} has {count_of(self.counts[high], 'partition')} and {low} has " + (
            f"{self.counts[low]:,}" if self.counts[low] else "none"
        )


def topic_counts(group: Group, assignment: Assignment) -> dict[str, dict[str, int]]:
    """Return the number of partitions by topic and subscriber."""
    held = {
        (member, partitions.topics[code]): count
        for member, partitions in assignment.items()
        for code, count in enumerate(np.bincount(partitions.codes).tolist())
        if count
    }
    return {
        topic: {id: held.get((id, topic), 0) for id in (group.members[at].id for at in found)}
        for topic, found in group.subscribers().items()
        if found
    }


def finding_of(group: Group) -> Cause | None:
    """Return a finding that the loads do not show, or None."""
    lag = next((one for one in group.notes if "% of the lag is on" in one), None)
    if lag is not None:
        return Cause(CauseKind.LAG_ON_FEW_MEMBERS, f"{lag}.")
    share = worst_share(group, keep_owners(group))
    return None if share is None else Cause(CauseKind.UNEVEN_TOPIC, f"{share}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShare:
    """Most uneven topic, and the member with the highest number of its partitions.

    ``even`` is the number of partitions per subscriber, rounded up. ``others`` is the number of
    further uneven topics.
    """

    topic: str
    member: str
    count: int
    partitions: int
    even: int
    others: int = 0

    def __str__(self) -> str:
        verb = "is" if self.count == 1 else "are"
        return (
            f"{self.count:,} of {count_of(self.partitions, 'partition')} of {self.topic} {verb} on "
            f"{self.member}"
        )


def worst_share(group: Group, assignment: Assignment) -> TopicShare | None:
    """Return the most uneven topic, or None if all topics are nearly even."""
    found = []
    for topic, counts in topic_counts(group, assignment).items():
        member = max(counts, key=lambda one: counts[one])
        count, partitions = counts[member], group.topic_table()[topic].partitions
        even = -(-partitions // len(counts))
        if 2 * count >= 3 * even and count > even:  # at least half more than equal numbers
            found.append(
                TopicShare(
                    topic=topic, member=member, count=count, partitions=partitions, even=even
                )
            )
    if not found:
        return None
    worst = max(found, key=lambda one: (one.count - one.even, one.count / one.even))
    return replace(worst, others=len(found) - 1)
