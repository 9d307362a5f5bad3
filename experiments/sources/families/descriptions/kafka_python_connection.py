"""Connections of kafka-python, for requests that confluent-kafka does not offer."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kassay.experiments.sources.families.descriptions.kafka_python_settings import (
    kafka_python_settings,
)
from kassay.reference.model.errors import InputError, KassayError

with warnings.catch_warnings():
    # kafka-python reads its schemas with a function that Python 3.11 and 3.12 deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        from kafka.errors import KafkaError
        from kafka.net.manager import KafkaConnectionManager
        from kafka.net.selector import NetworkSelector
        from kafka.protocol.api_message import ApiMessage as _Message
        from kafka.protocol.metadata import FindCoordinatorRequest
    except ImportError:  # older releases have other modules
        _Message = None

ApiMessage: Any = _Message
"""Base class of kafka-python's messages; None if kafka-python 3 is not installed."""

_GROUP_KEY = 0
"""Type of a key in FindCoordinator: a group id."""


class UnreadableDescriptionError(KassayError):
    """Error: kafka-python is missing, or cannot send the request. The message is the reason."""


@contextmanager
def connection(
    bootstrap_servers: str, settings: Mapping[str, str], timeout: float
) -> Iterator[Any]:
    """Connect to a cluster. Convert kafka-python's errors to `UnreadableDescriptionError`."""
    if ApiMessage is None:
        raise UnreadableDescriptionError("kafka-python 3 is not installed")
    milliseconds = int(timeout * 1000)
    net = NetworkSelector()
    try:
        manager = KafkaConnectionManager(
            net,
            bootstrap_servers=bootstrap_servers.split(","),
            request_timeout_ms=milliseconds,
            **kafka_python_settings(settings),
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


def groups_by_coordinator(manager: Any, names: Sequence[str]) -> dict[int, list[str]]:
    """Return the groups of each broker that coordinates some of them."""
    find = FindCoordinatorRequest(key_type=_GROUP_KEY, coordinator_keys=list(names), min_version=4)
    groups: dict[int, list[str]] = {}
    for found in manager.run(manager.send, find).coordinators:
        if not found.error_code:
            groups.setdefault(found.node_id, []).append(found.key)
    return groups
