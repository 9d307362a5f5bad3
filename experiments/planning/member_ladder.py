"""Numbers of members at which the maximum load drops: drain time, and values of autoscalers."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

import yaml

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import WeightSource
from kassay.reference.model.metrics import participants
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.sizing.limiting_partition import limiting_partition
from kassay.solver.sizing.load_by_member_count import Ladder, Rung
from kassay.solver.solution import value_and_bound

PartitionValues = Mapping[TopicPartition, Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Lag and message rates of a group.

    Parameters
    ----------
    lag
        Messages to read, per partition.
    produced
        Messages per second that are appended to each partition.
    consumed
        Messages per second that a member of speed 1 reads at most.
    """

    lag: PartitionValues
    produced: PartitionValues
    consumed: Fraction

    def drain_seconds(self, group: Group, assignment: Assignment) -> Fraction | None:
        """Return the seconds until each member has read its lag, or None if a member never does.

        Each member reads its own partitions at its maximum rate, while messages are appended.

        Examples
        --------
        >>> from kassay.reference.model.group import Member, Topic
        >>> members = (Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",)))
        >>> group = Group(topics=(Topic(name="t", partitions=2),), members=members)
        >>> backlog = spread_backlog(group, lag=600, produced=Fraction(10), consumed=Fraction(8))
        >>> backlog.drain_seconds(group, Assignment({"a": [("t", 0), ("t", 1)]}))
        >>> backlog.drain_seconds(group, Assignment({"a": [("t", 0)], "b": [("t", 1)]}))
        Fraction(100, 1)
        """
        members = group.member_table()
        longest = Fraction(0)
        for member in participants(group):
            partitions = assignment.get(member, ())
            lag = sum((self.lag[tp] for tp in partitions), Fraction(0))
            produced = sum((self.produced[tp] for tp in partitions), Fraction(0))
            spare = self.consumed * members[member].speed - produced
            if spare < 0 or (lag and not spare):
                return None
            if lag:
                longest = max(longest, lag / spare)
        return longest


def spread_backlog(
    group: Group,
    *,
    lag: int | PartitionValues,
    produced: Fraction,
    consumed: Fraction,
) -> Backlog:
    """Divide the total lag and the total rate of a group among its consumed partitions.

    A total lag is divided equally. The rate is divided in proportion to the weights if they are
    measured rates, otherwise equally.
    """
    subscribers = group.subscribers()
    weights = {
        TopicPartition(topic.name, number): topic.weight(number)
        if group.weight_source is WeightSource.RATE
        else 1
        for topic in group.topics
        if subscribers[topic.name]
        for number in range(topic.partitions)
    }
    total = sum(weights.values()) or 1
    equal = Fraction(1, max(1, len(weights)))
    return Backlog(
        lag=dict.fromkeys(weights, lag * equal) if isinstance(lag, int) else lag,
        produced={tp: produced * weight / total for tp, weight in weights.items()},
        consumed=consumed,
    )


def lag_of(group: Group) -> dict[TopicPartition, Fraction]:
    """Return the lag of each partition in a group with lag as weight."""
    return {
        TopicPartition(topic.name, number): Fraction(topic.weight(number))
        for topic in group.topics
        for number in range(topic.partitions)
    }


def ladder_record(
    group: Group,
    find: Callable[..., Ladder],
    *,
    first: int,
    last: int | None,
    backlog: Backlog | None,
    limits: SearchLimits,
    seed: int,
    progress: Callable[[str], None],
) -> dict[str, object]:
    """Return the ladder of a group, and the numbers of members of each topic alone, as JSON.

    ``find`` is `load_by_member_count` with its options other than the limits and numbers.
    """
    budget = SearchBudget.start(limits, seed)
    # The ladder of the group gets half of the limits; the topics share the other half.
    found = find(group, first=first, last=last, limits=budget.part(1 / 2).rest())
    record = _record(group, found, backlog)
    limiting = limiting_partition(group, limits=budget.rest(), seed=seed)
    record["limiting_partition"] = None if limiting is None else limiting.record()
    topics, not_proven = {}, []
    alone = list(_topics_alone(group))
    has_all_numbers = first == 1 and last is None
    for index, (name, topic) in enumerate(alone):
        if limits.is_stopped:
            break
        rungs = found.rungs
        if len(alone) > 1 or not has_all_numbers:
            progress(f"topic {name}")
            within = budget.part(1 / (len(alone) - index)).rest()
            rungs = find(topic, with_moves=False, limits=within).rungs
        topics[name] = [rung.members for rung in rungs]
        if not all(rung.is_proven for rung in rungs):
            not_proven.append(name)
    return record | {"topics": topics, "topics_not_proven": not_proven}


def _topics_alone(group: Group) -> Iterator[tuple[str, Group]]:
    """Yield each consumed topic, and the group without all other topics."""
    subscribers = group.subscribers()
    for topic in group.topics:
        if subscribers[topic.name] and topic.partitions:
            yield topic.name, replace(group, topics=(topic,))


def _record(group: Group, found: Ladder, backlog: Backlog | None) -> dict[str, object]:
    current = len(group.members)
    wasted = [rung for rung in found.rungs if rung.members <= current <= rung.last]
    return {
        "id": group.id,
        "current": current,
        "from": found.first,
        "to": found.last,
        "wasted_members": current - wasted[0].members if wasted else None,
        "steps": [_step(rung, backlog) for rung in found.rungs],
    }


def _step(rung: Rung, backlog: Backlog | None) -> dict[str, object]:
    step: dict[str, object] = {
        "members": rung.members,
        "equal_up_to": rung.last,
        "makespan": value_and_bound(rung.makespan),
        "drop_proven": rung.is_proven,
        "movement": value_and_bound(rung.movement),
        "placed": rung.placed,
        "limiting_partition": rung.limiting_partition,
        "movement_from_previous": value_and_bound(rung.moves_from_previous),
    }
    if backlog is not None:
        seconds = backlog.drain_seconds(rung.group, rung.assignment)
        step["drain_seconds"] = None if seconds is None else math.ceil(seconds)
    return step


_NAME = re.compile(r"[^a-z0-9]+")
_MAX_NAME = 63
"""Maximum length of a Kubernetes name."""


class Autoscaler(StrEnum):
    """Kubernetes autoscaler for which kassay writes values."""

    KEDA = "keda"
    HPA = "hpa"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deployment:
    """Deployment of a group: Kubernetes name, group id, topics and lag per replica."""

    name: str
    group: str
    topics: tuple[str, ...]
    lag_threshold: int

    def manifest(self, version: str, kind: str, spec: dict[str, object]) -> dict[str, object]:
        """Return the manifest of an autoscaler of the deployment."""
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name}
        return {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": self.name},
            "spec": {"scaleTargetRef": target, **spec},
        }


def autoscaler_values(
    group: Group, ladder: Ladder, autoscaler: Autoscaler, *, lag_threshold: int = 10
) -> str:
    """Write the useful numbers of members as the manifest of an autoscaler, in YAML.

    The numbers of replicas are limited to the first and the last rung. KEDA also rounds the number
    up to the next rung: its formula maps the lag to a number of replicas, with ``lag_threshold``
    messages per replica. The HPA cannot round; a comment lists the useful numbers.

    Raises
    ------
    InputError
        If the ladder has no rung.
    """
    if not ladder.rungs:
        raise InputError(
            f"group {group.id!r}: no number of members from {ladder.first} to {ladder.last} "
            "consumes all topics within the capacities"
        )
    name = _NAME.sub("-", (group.id or "").lower()).strip("-")[:_MAX_NAME].strip("-")
    subscribers = group.subscribers()
    deployment = _Deployment(
        name=name or "group",
        group=group.id or "",
        topics=tuple(topic.name for topic in group.topics if subscribers[topic.name]),
        lag_threshold=lag_threshold,
    )
    manifest = (_keda if autoscaler is Autoscaler.KEDA else _hpa)(deployment, ladder)
    text = yaml.safe_dump(manifest, sort_keys=False, width=10_000, allow_unicode=True)
    return "\n".join([*_comments(ladder), text])


def _comments(ladder: Ladder) -> Iterator[str]:
    yield "# Useful numbers of replicas, with the maximum load. All other numbers waste replicas."
    for rung in ladder.rungs:
        proof = "" if rung.is_proven else ", not proven"
        yield f"#   {rung.members}: {rung.makespan.value}{proof}"


def _keda(deployment: _Deployment, ladder: Ladder) -> dict[str, object]:
    # Without a topic, KEDA sums the lag of all topics with committed offsets.
    topic = {"topic": deployment.topics[0]} if len(deployment.topics) == 1 else {}
    metadata = {
        "bootstrapServers": "BOOTSTRAP_SERVERS",
        "consumerGroup": deployment.group,
        **topic,
        "lagThreshold": str(deployment.lag_threshold),
    }
    modifiers = {
        "formula": _formula(ladder.rungs, deployment.lag_threshold),
        "target": "1",
        "metricType": "AverageValue",
    }
    spec = {
        "minReplicaCount": ladder.rungs[0].members,
        "maxReplicaCount": ladder.rungs[-1].members,
        "advanced": {"scalingModifiers": modifiers},
        "triggers": [{"type": "kafka", "name": "lag", "metadata": metadata}],
    }
    return deployment.manifest("keda.sh/v1alpha1", "ScaledObject", spec)


def _formula(rungs: tuple[Rung, ...], lag_threshold: int) -> str:
    """Return a KEDA formula that rounds the number of replicas up to the next rung."""
    parts = [f"lag <= {one.members * lag_threshold} ? {one.members} : " for one in rungs[:-1]]
    return "".join(parts) + str(rungs[-1].members)


def _hpa(deployment: _Deployment, ladder: Ladder) -> dict[str, object]:
    selector = {"matchLabels": {"consumergroup": deployment.group}}
    metric = {"name": "kafka_consumergroup_lag", "selector": selector}
    average = {"type": "AverageValue", "averageValue": str(deployment.lag_threshold)}
    spec = {
        "minReplicas": ladder.rungs[0].members,
        "maxReplicas": ladder.rungs[-1].members,
        "metrics": [{"type": "External", "external": {"metric": metric, "target": average}}],
    }
    return deployment.manifest("autoscaling/v2", "HorizontalPodAutoscaler", spec)
