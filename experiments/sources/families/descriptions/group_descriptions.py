"""Describe share groups and Streams groups of a running cluster, with kafka-python.

The JSON files in this folder contain the fields of the requests ShareGroupDescribe (API key 77)
and StreamsGroupDescribe (API key 89, version 0), as in Kafka 4.4.0.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from kassay.experiments.sources.families.descriptions.kafka_python_connection import (
    ApiMessage,
    UnreadableDescriptionError,
    connection,
    groups_by_coordinator,
)
from kassay.reference.documents.family_documents import Kind

_REQUESTS: dict[Kind, Any] = {}
_RESPONSES: dict[Kind, Any] = {}
if ApiMessage is not None:
    with warnings.catch_warnings():
        # kafka-python reads its schemas with a function that Python 3.11 and 3.12 deprecate.
        warnings.simplefilter("ignore", DeprecationWarning)

        class ShareGroupDescribeRequest(ApiMessage, load_json=__package__):  # type: ignore[call-arg,misc]
            """Request with API key 77."""

        class ShareGroupDescribeResponse(ApiMessage, load_json=__package__):  # type: ignore[call-arg,misc]
            """Response to the request with API key 77."""

        class StreamsGroupDescribeRequest(ApiMessage, load_json=__package__):  # type: ignore[call-arg,misc]
            """Request with API key 89."""

        class StreamsGroupDescribeResponse(ApiMessage, load_json=__package__):  # type: ignore[call-arg,misc]
            """Response to the request with API key 89."""

    _REQUESTS = {
        Kind.SHARE: ShareGroupDescribeRequest,
        Kind.STREAMS_GROUP: StreamsGroupDescribeRequest,
    }
    _RESPONSES = {
        Kind.SHARE: ShareGroupDescribeResponse,
        Kind.STREAMS_GROUP: StreamsGroupDescribeResponse,
    }


def describe_family_groups(
    bootstrap_servers: str,
    settings: Mapping[str, str],
    kind: Kind,
    names: Sequence[str],
    *,
    timeout: float,
) -> dict[str, Mapping[str, Any]]:
    """Request the descriptions of groups of one kind from their coordinators.

    The settings are librdkafka properties; the timeout is in seconds per request. A group that
    its coordinator refuses to describe is missing in the result.

    Raises
    ------
    UnreadableDescriptionError
        If kafka-python 3 is not installed, does not support a setting, or gets no response.
    """
    described: dict[str, Mapping[str, Any]] = {}
    with connection(bootstrap_servers, settings, timeout) as manager:
        for node, groups in groups_by_coordinator(manager, names).items():
            request = request_of(kind, groups)
            described |= _groups(manager.run(manager.send, request, node).to_dict())
    return described


def request_of(kind: Kind, names: Sequence[str]) -> Any:
    """Return the request that describes groups of a kind."""
    return _REQUESTS[kind](group_ids=list(names), include_authorized_operations=False)


def decode_family_description(
    kind: Kind, data: bytes, *, version: int
) -> dict[str, Mapping[str, Any]]:
    """Decode the body of a response to ShareGroupDescribe or StreamsGroupDescribe."""
    if kind not in _RESPONSES:
        raise UnreadableDescriptionError("kafka-python 3 is not installed")
    return _groups(_RESPONSES[kind].decode(data, version=version).to_dict())


def _groups(response: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {group["group_id"]: group for group in response["groups"] if not group["error_code"]}
