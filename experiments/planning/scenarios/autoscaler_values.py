"""Scaling ladders as values for Kubernetes autoscalers, in YAML."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import yaml

from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.solver.sizing.load_by_member_count import Ladder, Rung

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
