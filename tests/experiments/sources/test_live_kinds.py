"""Share groups, Streams groups and Streams applications of a cluster with fixed answers."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from benchmarks.record_encoder import encode_message
from kassay.experiments.sources.import_captures import ImportedGroup
from kassay.experiments.sources.live_cluster.cluster_responses import (
    LiveGroup,
    LiveTopic,
    ThreadMember,
)
from kassay.experiments.sources.live_cluster.kafka_python import (
    RESPONSES,
    UnreadableDescriptionError,
    groups_of_response,
)
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.protocol.message_decoder import ASSIGNMENT, SUBSCRIPTION
from tests.experiments.sources.test_live_groups import Tables, member, read
from tests.stored_cases import stored_cases

TOPIC = {"topic_id": UUID(int=1), "topic_name": "t", "partitions": [0, 1]}
SHARE = stored_cases("described_share_group")
SHARE["members"][0]["assignment"]["topic_partitions"].append(TOPIC)


STREAMS = stored_cases("described_streams_group")
PROCESS = UUID(int=5)
VERSIONS = {Kind.SHARE: 1, Kind.STREAMS_GROUP: 0}
"""Version of the response."""


def fields(value: Any) -> Any:
    """Convert the objects of a response to the form that kafka-python encodes."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: fields(one) for name, one in value.items()})
    return [fields(one) for one in value] if isinstance(value, list) else value


@dataclass
class KindTables(Tables):
    """Cluster with groups of all kinds."""

    descriptions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    threads: list[ThreadMember] = field(default_factory=list)

    def describe_groups(self, kind: Kind, groups: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        if not self.descriptions:
            raise UnreadableDescriptionError("kafka-python 3 is not installed")
        version = VERSIONS[kind]
        found = [fields(self.descriptions[name]) for name in groups if name in self.descriptions]
        data = RESPONSES[kind](throttle_time_ms=0, groups=found).encode(version=version)
        return groups_of_response(RESPONSES[kind].decode(bytes(data), version=version))

    def thread_members(self, group: str) -> list[ThreadMember]:
        return self.threads


def thread(id: str, *active: int, offsets: Sequence[tuple[int, int]] = ()) -> ThreadMember:
    sums = struct.pack(">i", len(offsets))
    sums += b"".join(struct.pack(">iiqh", 0, task, offset, -1) for task, offset in offsets)
    sent = struct.pack(">ii", 11, 11) + PROCESS.bytes + b"\0" * 4 + sums + b"\0" * 9
    given = struct.pack(">iii", 11, 11, len(active))
    given += b"".join(struct.pack(">iii", 0, task, 0) for task in active) + b"\0" * 24
    subscribed = {"topics": ["t"], "user_data": sent, "owned": [], "generation": 1, "rack": None}
    return ThreadMember(
        id,
        encode_message(SUBSCRIPTION, 3, subscribed),
        encode_message(ASSIGNMENT, 3, {"assigned": [], "user_data": given}),
    )


def content_of(imported: ImportedGroup) -> Any:
    assert imported.document is not None, imported.error
    return imported.document.content


def test_share_and_streams_groups_are_documents_of_their_kind() -> None:
    tables = KindTables(
        {},
        {"t": LiveTopic(4), "u": LiveTopic(6)},
        others={"queue": "share", "app": "streams"},
        descriptions={"queue": SHARE, "app": STREAMS},
    )
    app, queue = map(content_of, read(tables))
    assert queue == {
        "kind": "share",
        "id": "queue",
        "topics": {"t": 4, "u": 6},
        "members": [{"id": "m", "topics": ["t", "u"], "owned": [["t", 0], ["t", 1]], "rack": "r"}],
    }
    assert app["subtopologies"] == {"0": {"partitions": 6, "stateful": True}}
    [thread_of_app] = app["members"]
    assert thread_of_app["active"] == {"0": [0, 1]}
    assert thread_of_app["offsets"] == {"0": {"1": 7}}
    assert thread_of_app["tags"] == {"zone": "a"}


def test_an_application_has_the_processes_of_its_threads() -> None:
    tables = KindTables(
        {"app": [LiveGroup("app", "Stable", (member("x", ("t", 0)),), assignor="stream")]},
        threads=[thread("x", 0, offsets=[(0, -2)]), thread("y", 1, offsets=[(1, -2), (2, 40)])],
    )
    content = content_of(read(tables)[0])
    assert content["subtopologies"]["0"]["partitions"] == 3
    assert content["subtopologies"]["0"]["stateful"] is True
    assert content["processes"] == [
        {
            "id": str(PROCESS),
            "threads": 2,
            "active": ["0_0", "0_1"],
            "standby": [],
            "lags": {"0_2": 0},
        }
    ]


@pytest.mark.parametrize(
    ("kind", "descriptions", "message"),
    [
        ("share", {}, "cannot be read: kafka-python 3 is not installed"),
        ("share", {"other": SHARE}, "the coordinator does not describe the group"),
        ("share", {"queue": SHARE}, "the cluster does not describe topic 'u'"),
        ("streams", {"queue": {**STREAMS, "group_id": "queue"}}, "does not describe topic 'u'"),
    ],
)
def test_a_group_that_cannot_be_described_is_one_error(
    kind: str, descriptions: dict[str, Mapping[str, Any]], message: str
) -> None:
    tables = KindTables({}, {"t": LiveTopic(4)}, others={"queue": kind}, descriptions=descriptions)
    [found] = read(tables)
    assert found.document is None
    assert message in str(found.error)
