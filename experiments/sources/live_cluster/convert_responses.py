"""Convert confluent-kafka's responses to groups, offsets and topics."""

import uuid
from collections.abc import Mapping
from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupType

from kassay.experiments.sources.live_cluster.cluster_interface import (
    DEAD,
    LiveGroup,
    LiveMember,
    LiveTopic,
)
from kassay.experiments.sources.merge_captures import PartitionKey
from kassay.reference.model.errors import InputError
from kassay.reference.model.group_annotations import Protocol

_STATES: Mapping[ConsumerGroupState, str] = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: DEAD,
    ConsumerGroupState.EMPTY: "Empty",
}
_PROTOCOLS: Mapping[ConsumerGroupType, Protocol] = {
    ConsumerGroupType.CLASSIC: Protocol.CLASSIC,
    ConsumerGroupType.CONSUMER: Protocol.CONSUMER,
}


def convert_group(name: str, described: Any) -> LiveGroup:
    """Convert confluent-kafka's description of a group to a `LiveGroup`."""
    members = tuple(
        LiveMember(
            id=member.member_id,
            client_id=member.client_id,
            instance_id=member.group_instance_id or None,
            assigned=_partitions(member.assignment),
            target=member.target_assignment and _partitions(member.target_assignment),
            host=member.host or None,
            ordered=_ordered(member.target_assignment or member.assignment),
        )
        for member in described.members
    )
    # An empty group of subscribing consumers keeps its protocol type; this one never had one.
    is_simple = described.is_simple_consumer_group and not members
    protocol = Protocol.SIMPLE if is_simple else _PROTOCOLS.get(described.type)
    state = _STATES.get(described.state, "Unknown")
    if state == "Unknown" and protocol is Protocol.CONSUMER:
        # The library does not know the other states of the consumer protocol.
        reconciling = any(member.target not in (None, member.assigned) for member in members)
        state = "Reconciling" if reconciling else "Assigning"
    return LiveGroup(name, state, members, described.partition_assignor or None, protocol)


def _ordered(assignment: Any) -> tuple[PartitionKey, ...]:
    return tuple((tp.topic, tp.partition) for tp in assignment.topic_partitions)


def _partitions(assignment: Any) -> frozenset[PartitionKey]:
    return frozenset(_ordered(assignment))


def convert_offsets(name: str, answer: Any) -> dict[PartitionKey, int]:
    """Return the committed offsets in a response of confluent-kafka, by partition.

    Partitions without a committed offset are skipped.
    """
    offsets: dict[PartitionKey, int] = {}
    for tp in answer.topic_partitions:
        if tp.error is not None:
            raise InputError(f"group {name!r}: {tp.topic}-{tp.partition}: {tp.error.str()}")
        if tp.offset >= 0:
            offsets[tp.topic, tp.partition] = tp.offset
    return offsets


def convert_topic(described: Any) -> LiveTopic:
    """Convert confluent-kafka's description of a topic to a `LiveTopic`."""
    ordered = sorted(described.partitions, key=lambda partition: int(partition.id))
    racks = tuple(tuple(each.rack or None for each in tp.replicas) for tp in ordered)
    id = described.topic_id
    high, low = id.get_most_significant_bits(), id.get_least_significant_bits()
    number = (high % 2**64) << 64 | (low % 2**64)
    return LiveTopic(
        partitions=len(ordered),
        id=uuid.UUID(int=number) if number else None,  # brokers before 2.8 have none
        racks=racks if any(rack is not None for row in racks for rack in row) else None,
    )
