"""Import share groups, Streams groups and Streams applications of a running cluster."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kassay.experiments.sources.kinds.classic_streams_groups import streams_application_document
from kassay.experiments.sources.kinds.share_and_streams_groups import (
    share_group_document,
    streams_group_document,
    topics_of_streams_group,
)
from kassay.experiments.sources.live_cluster.cluster_interface import Cluster, LiveTopic
from kassay.experiments.sources.live_cluster.kafka_python import (
    UnreadableDescriptionError,
)
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.reference.model.errors import InputError

KIND_TYPES = {"share": Kind.SHARE, "streams": Kind.STREAMS_GROUP}
"""Kind of the groups that kassay describes, by protocol type."""


def read_live_kinds(
    cluster: Cluster, kinds: Mapping[str, Kind]
) -> dict[str, KindDocument | InputError]:
    """Read the groups of a cluster that ``kinds`` names, by id.

    Groups of `Kind.STREAMS` use the classic protocol.
    """
    found: dict[str, KindDocument | InputError] = {}
    for kind in (Kind.SHARE, Kind.STREAMS_GROUP):
        names = sorted(name for name, one in kinds.items() if one is kind)
        if names:
            found |= dict(_described(cluster, kind, names))
    applications = sorted(name for name, one in kinds.items() if one is Kind.STREAMS)
    topics = cluster.topic_names() if applications else []
    for name in applications:
        try:
            found[name] = streams_application_document(
                name, cluster.thread_members(name), topics=topics
            )
        except InputError as error:
            found[name] = error
    return found


def _described(
    cluster: Cluster, kind: Kind, names: Sequence[str]
) -> Iterator[tuple[str, KindDocument | InputError]]:
    try:
        described = cluster.describe_groups(kind, names)
    except UnreadableDescriptionError as error:
        reason = str(error)
        yield from (
            (name, InputError(f"group {name!r} cannot be read: {reason}")) for name in names
        )
        return
    topics: dict[str, LiveTopic | InputError] = {}
    needed = sorted({topic for one in described.values() for topic in _topics(kind, one)})
    if needed:
        topics = cluster.topics(needed)
    counts = {name: one.partitions for name, one in topics.items() if isinstance(one, LiveTopic)}
    build = share_group_document if kind is Kind.SHARE else streams_group_document
    for name in names:
        if name not in described:
            yield name, InputError(f"group {name!r}: the coordinator does not describe the group")
            continue
        try:
            yield name, build(described[name], counts)
        except InputError as error:
            yield name, error


def _topics(kind: Kind, described: Mapping[str, Any]) -> set[str]:
    if kind is Kind.SHARE:
        return {
            topic
            for member in described["members"]
            for topic in (
                *member["subscribed_topic_names"],
                *(one["topic_name"] for one in member["assignment"]["topic_partitions"]),
            )
        }
    try:
        return topics_of_streams_group(described)
    except InputError:
        return set()
