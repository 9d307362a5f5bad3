"""Describe groups of the consumer protocol, and list groups of other types, with kafka-python.

The request ConsumerGroupDescribe (API key 69) returns subscriptions, racks and epochs, which
confluent-kafka does not expose. The JSON files in this folder contain the fields of the request
and of its response, as in ``clients/src/main/resources/common/message`` of Kafka 4.4.0.
kafka-python 3 encodes and decodes messages by such files.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from kassay.experiments.sources.live_cluster.cluster_interface import (
    JoinedSubscription,
    LiveGroup,
    LiveMember,
)
from kassay.experiments.sources.live_cluster.kafka_python import (
    ApiMessage,
    connection,
    groups_by_coordinator,
)
from kassay.experiments.sources.merge_captures import PartitionKey
from kassay.reference.model.group import LATEST_PROTOCOL_VERSION, Protocol

with warnings.catch_warnings():
    # kafka-python reads its schemas with a function that Python 3.11 and 3.12 deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    if ApiMessage is not None:
        from kafka.protocol.admin import ListGroupsRequest

        class ConsumerGroupDescribeRequest(ApiMessage, load_json=__package__):  # type: ignore[call-arg,misc]
            """Request with API key 69."""

        class ConsumerGroupDescribeResponse(ApiMessage, load_json=__package__):  # type: ignore[call-arg,misc]
            """Response to the request with API key 69."""


_CLASSIC_MEMBER = 0
_TYPES_OF_CONSUMERS = ("consumer", "")
"""Protocol types of groups of consumers; a group without members may have an empty one."""


def describe_consumer_groups(
    bootstrap_servers: str, settings: Mapping[str, str], names: Sequence[str], *, timeout: float
) -> dict[str, LiveGroup]:
    """Request the descriptions of groups of the consumer protocol from their coordinators.

    The parameters, missing groups and errors are those of
    `kassay.experiments.sources.live_cluster.kafka_python.describe_groups_of_kind`.
    """
    with connection(bootstrap_servers, settings, timeout) as manager:
        described: dict[str, LiveGroup] = {}
        for node, groups in groups_by_coordinator(manager, names).items():
            request = ConsumerGroupDescribeRequest(
                group_ids=groups, include_authorized_operations=False
            )
            response = manager.run(manager.send, request, node).to_dict()
            described |= _groups(response)
    return described


def list_other_groups(
    bootstrap_servers: str, settings: Mapping[str, str], *, timeout: float
) -> dict[str, str]:
    """Return the protocol type of each group that is not a group of consumers.

    The settings are librdkafka properties; the timeout is in seconds per request.

    Raise UnreadableDescriptionError if kafka-python 3 is not installed, does not support a setting,
    or gets no response.
    """
    with connection(bootstrap_servers, settings, timeout) as manager:
        responses = [
            manager.run(manager.send, ListGroupsRequest(min_version=0), broker.node_id)
            for broker in manager.cluster.brokers()
        ]
        return {
            group.group_id: group.protocol_type
            for response in responses
            for group in response.groups
            if group.protocol_type not in _TYPES_OF_CONSUMERS
        }


def decode_description(data: bytes, *, version: int) -> dict[str, LiveGroup]:
    """Decode the body of a response to ConsumerGroupDescribe."""
    return _groups(ConsumerGroupDescribeResponse.decode(data, version=version).to_dict())


def _groups(response: Mapping[str, Any]) -> dict[str, LiveGroup]:
    """Convert the groups of a response that the coordinator could describe."""
    return {
        group["group_id"]: LiveGroup(
            group["group_id"],
            group["group_state"],
            tuple(map(_member, group["members"])),
            group["assignor_name"] or None,
            Protocol.CONSUMER,
        )
        for group in response["groups"]
        if not group["error_code"]
    }


def _member(member: Mapping[str, Any]) -> LiveMember:
    assigned, target = _partitions(member["assignment"]), _partitions(member["target_assignment"])
    return LiveMember(
        id=member["member_id"],
        client_id=member["client_id"],
        instance_id=member["instance_id"] or None,
        assigned=frozenset(assigned),
        target=frozenset(target),
        host=member["client_host"] or None,
        ordered=target or assigned,
        epoch=member["member_epoch"],
        subscription=JoinedSubscription(
            version=LATEST_PROTOCOL_VERSION,
            topics=tuple(member["subscribed_topic_names"]),
            rack=member["rack_id"] or None,
            pattern=member["subscribed_topic_regex"] or None,
        ),
        is_classic=member.get("member_type") == _CLASSIC_MEMBER,
    )


def _partitions(assignment: Mapping[str, Any]) -> tuple[PartitionKey, ...]:
    return tuple(
        (topic["topic_name"], number)
        for topic in assignment["topic_partitions"]
        for number in topic["partitions"]
    )
