"""Recorded groups of real clients, see tests/data/clients/README.md."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup, LiveTopic
from kassay.experiments.sources.merge_captures import ObservedMember, PartitionKey
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Protocol

DATA = Path(__file__).parents[2] / "data" / "clients"
EXPECTED: Mapping[str, Mapping[str, Any]] = json.loads((DATA / "expected.json").read_text())
VERSIONS: Mapping[str, str] = json.loads((DATA / "manifest.json").read_text())["versions"]
TOPICS = {"a.orders": 7, "b.payments": 4, "c.clicks": 5}


def expected_owners(name: str) -> dict[str, list[tuple[str, int]]]:
    """Return the assignment that Java's admin client reported."""
    members = EXPECTED[name]["members"]
    return {id: [(topic, number) for topic, number in owned] for id, owned in members.items()}


class RecordedCluster:
    """Cluster that repeats the recorded answers."""

    def __init__(self) -> None:
        self._answers = json.loads((DATA / "live.json").read_text())

    def group_ids(self) -> list[str]:
        return sorted(self._answers["groups"])

    def other_groups(self) -> dict[str, str]:
        return {}

    def describe(self, groups: Sequence[str]) -> dict[str, LiveGroup | InputError]:
        return {name: _group(self._answers["groups"][name]) for name in groups}

    def subscriptions(self, groups: Sequence[str]) -> dict[str, bytes]:
        return {id: bytes.fromhex(data) for id, data in self._answers["subscriptions"].items()}

    def committed_offsets(
        self, groups: Sequence[str]
    ) -> dict[str, dict[PartitionKey, int] | InputError]:
        return {name: _offsets(self._answers["offsets"].get(name, [])) for name in groups}

    def topics(self, names: Sequence[str]) -> dict[str, LiveTopic | InputError]:
        known = self._answers["topics"]
        return {name: _topic(known[name]) for name in names if name in known}

    def end_offsets(
        self, partitions: Sequence[PartitionKey], *, timeout: float | None = None
    ) -> dict[PartitionKey, int]:
        return {(topic, number): 5 + number for topic, number in partitions}


def _group(answer: Mapping[str, Any]) -> LiveGroup | InputError:
    if "error" in answer:
        return InputError(answer["error"])
    protocol = answer["protocol"]
    return LiveGroup(
        **{
            **answer,
            "members": tuple(map(_member, answer["members"])),
            "protocol": None if protocol is None else Protocol(protocol),
        }
    )


def _member(answer: Mapping[str, Any]) -> ObservedMember:
    target = answer["target"]
    return ObservedMember(
        **{
            **answer,
            "owned": set(map(tuple, answer["owned"])),
            "ordered": tuple(map(tuple, answer["ordered"])),
            "target": None if target is None else set(map(tuple, target)),
        }
    )


def _offsets(answer: Any) -> dict[PartitionKey, int] | InputError:
    if isinstance(answer, dict):
        return InputError(answer["error"])
    return {(topic, number): offset for topic, number, offset in answer}


def _topic(answer: Mapping[str, Any]) -> LiveTopic:
    racks = answer["racks"]
    return LiveTopic(
        partitions=answer["partitions"],
        id=uuid.UUID(answer["id"]),
        racks=None if racks is None else tuple(map(tuple, racks)),
    )
