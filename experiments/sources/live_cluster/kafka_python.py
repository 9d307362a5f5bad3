"""Request the descriptions of groups with newer protocols, by kafka-python.

ConsumerGroupDescribe (API key 69) returns subscriptions, racks and epochs, which confluent-kafka
does not expose. kafka-python 3 encodes and decodes messages by the JSON files in this folder. The
files contain the fields of requests and responses, as in
``clients/src/main/resources/common/message`` of Kafka 4.4.0.
"""

import ssl
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import new_class
from typing import Any

from kassay.experiments.sources.live_cluster.client_properties import IGNORED, KAFKA_PYTHON, TLS
from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup
from kassay.experiments.sources.live_cluster.msk_iam import oauth_properties, token_source
from kassay.experiments.sources.merge_captures import ObservedMember, PartitionKey
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.model.errors import InputError, KassayError
from kassay.reference.model.group import Protocol

_UPPER = frozenset({"sasl.mechanisms", "security.protocol"})


def kafka_python_settings(properties: Mapping[str, str], servers: str) -> dict[str, Any]:
    """Convert librdkafka properties to kafka-python settings, or raise InputError."""
    settings: dict[str, Any] = {"client_id": "kassay"}
    token = token_source(properties, servers)
    if token is not None:
        provider = {"token": lambda _self: token()[0]}
        settings["sasl_oauth_token_provider"] = type("Tokens", (AbstractTokenProvider,), provider)()
        properties = oauth_properties(properties)
    for name, value in properties.items():
        if name not in KAFKA_PYTHON:
            raise InputError(f"kafka-python does not support the property {name!r}; remove it")
        if KAFKA_PYTHON[name] not in (IGNORED, TLS):
            settings[KAFKA_PYTHON[name]] = value.upper() if name in _UPPER else value
    if str(settings.get("security_protocol", "")).endswith("SSL"):
        settings["ssl_context"] = _tls_context(properties)
    return settings


def _tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    location, text = properties.get("ssl.ca.location"), properties.get("ssl.ca.pem")
    context = ssl.create_default_context(cafile=location, cadata=text)
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    with _file(properties, "ssl.certificate") as certificate, _file(properties, "ssl.key") as key:
        if certificate is not None:
            context.load_cert_chain(certificate, key, properties.get("ssl.key.password"))
    return context


@contextmanager
def _file(properties: Mapping[str, str], name: str) -> Iterator[str | None]:
    """Yield the path of a certificate or key. Inline text is written to a temporary file."""
    text = properties.get(f"{name}.pem")
    if text is None:
        yield properties.get(f"{name}.location")
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "content.pem")
        path.touch(mode=0o600)
        path.write_text(text)
        yield str(path)


_KINDS = {Kind.CONSUMER: "Consumer", Kind.SHARE: "Share", Kind.STREAMS_GROUP: "Streams"}
"""Start of the names of the requests, with API keys 69, 77 and 89, by kind."""
_REQUESTS: dict[Kind, Any] = {}
RESPONSES: dict[Kind, Any] = {}
"""Classes of messages by kind. The table is empty without kafka-python 3."""

with warnings.catch_warnings():
    # kafka-python reads its schemas with a function that Python 3.11 and 3.12 deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        from kafka.errors import KafkaError
        from kafka.net.manager import KafkaConnectionManager
        from kafka.net.sasl.oauth import AbstractTokenProvider
        from kafka.net.selector import NetworkSelector
        from kafka.protocol.admin import ListGroupsRequest
        from kafka.protocol.api_message import ApiMessage
        from kafka.protocol.metadata import FindCoordinatorRequest
    except ImportError:
        pass  # older releases have other modules
    else:
        for _kind, _name in _KINDS.items():
            for _form, _messages in (("Request", _REQUESTS), ("Response", RESPONSES)):
                _messages[_kind] = new_class(
                    f"{_name}GroupDescribe{_form}", (ApiMessage,), {"load_json": __package__}
                )

_GROUP_KEY = 0
"""Value of FindCoordinator's key type that means a group id."""
_CLASSIC_MEMBER = 0
_TYPES_OF_CONSUMERS = ("consumer", "")
"""Protocol types of consumer groups. A group without members can have an empty type."""


class UnreadableDescriptionError(KassayError):
    """Error because kafka-python is missing, or because its request failed."""


@contextmanager
def connection(
    bootstrap_servers: str, settings: Mapping[str, str], timeout: float
) -> Iterator[Any]:
    """Connect to a cluster, and convert errors to `UnreadableDescriptionError`."""
    if not _REQUESTS:
        raise UnreadableDescriptionError(
            "kafka-python 3 is not installed; run: pip install 'kafka-python>=3'"
        )
    milliseconds = int(timeout * 1000)
    net = NetworkSelector()
    try:
        manager = KafkaConnectionManager(
            net,
            bootstrap_servers=bootstrap_servers.split(","),
            request_timeout_ms=milliseconds,
            **kafka_python_settings(settings, bootstrap_servers),
        )
        try:
            manager.bootstrap(milliseconds)
            yield manager
        finally:
            manager.close()
    except InputError as error:
        raise UnreadableDescriptionError(str(error)) from None
    except (KafkaError, OSError, ValueError) as error:
        raise UnreadableDescriptionError(f"kafka-python: {error or type(error).__name__}") from None
    finally:
        net.close()


def describe_groups_of_kind(
    bootstrap_servers: str,
    settings: Mapping[str, str],
    kind: Kind,
    names: Sequence[str],
    *,
    timeout: float,
) -> dict[str, Mapping[str, Any]]:
    """Request the descriptions of groups of one kind from their coordinators.

    The settings are librdkafka properties; the timeout is in seconds per request. The result
    lacks groups that the coordinator refuses to describe.

    Raise UnreadableDescriptionError if kafka-python 3 is not installed, does not support a setting,
    or gets no response.
    """
    described: dict[str, Mapping[str, Any]] = {}
    coordinated: dict[int, list[str]] = {}
    with connection(bootstrap_servers, settings, timeout) as manager:
        find = FindCoordinatorRequest(
            key_type=_GROUP_KEY, coordinator_keys=list(names), min_version=4
        )
        for found in manager.run(manager.send, find).coordinators:
            if not found.error_code:
                coordinated.setdefault(found.node_id, []).append(found.key)
        for node, groups in coordinated.items():
            request = _REQUESTS[kind](group_ids=groups, include_authorized_operations=False)
            described |= groups_of_response(manager.run(manager.send, request, node))
    return described


def groups_of_response(response: Any) -> dict[str, Mapping[str, Any]]:
    """Return the groups in a response by id, except groups with an error."""
    groups = response.to_dict()["groups"]
    return {group["group_id"]: group for group in groups if not group["error_code"]}


def list_other_groups(
    bootstrap_servers: str, settings: Mapping[str, str], *, timeout: float
) -> dict[str, str]:
    """Return the protocol type of each group that is not a consumer group.

    The parameters and errors are those of `describe_groups_of_kind`.
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


def live_group(described: Mapping[str, Any]) -> LiveGroup:
    """Convert the description of one group in a ConsumerGroupDescribe response to a `LiveGroup`."""
    return LiveGroup(
        described["group_id"],
        described["group_state"],
        tuple(map(_member, described["members"])),
        described["assignor_name"] or None,
        Protocol.CONSUMER,
    )


def _member(member: Mapping[str, Any]) -> ObservedMember:
    assigned, target = (partitions_of(member[name]) for name in ("assignment", "target_assignment"))
    return ObservedMember(
        id=member["member_id"],
        client_id=member["client_id"],
        host=member["client_host"] or None,
        instance_id=member["instance_id"] or None,
        epoch=member["member_epoch"],
        owned=set(assigned),
        target=None if set(target) == set(assigned) else set(target),
        subscription=tuple(member["subscribed_topic_names"]),
        rack=member["rack_id"] or None,
        ordered=target or assigned,
        pattern=member["subscribed_topic_regex"] or None,
        is_classic=member.get("member_type") == _CLASSIC_MEMBER,
    )


def partitions_of(assignment: Mapping[str, Any]) -> tuple[PartitionKey, ...]:
    """Return the partitions in the assignment of a response."""
    return tuple(
        (topic["topic_name"], number)
        for topic in assignment["topic_partitions"]
        for number in topic["partitions"]
    )
