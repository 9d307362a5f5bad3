"""Driver that calls the assignors of one Python library.

Usage: python driver.py PACKAGE, where PACKAGE is kafka (kafka-python) or aiokafka

It writes a line when it is ready. Then it reads one JSON line per group,
``{"assignor": NAME, "group": GROUP_DOCUMENT}``, and writes one line: an object with the partitions
per member, or ``{"failed": EXCEPTION, "reason": TEXT}`` for an exception of the library.
"""

import importlib
import json
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import Any

_GRACE_SECONDS = 1.0
_ASSIGNORS = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}


def assignor_class(package: str, name: str) -> Any:
    """Return the class of an assignor of kafka-python (package kafka) or aiokafka."""
    module, class_name = _ASSIGNORS[name]
    return getattr(importlib.import_module(f"{package}.coordinator.assignors.{module}"), class_name)


class Topics:
    """Metadata of the cluster, as far as the assignors read them."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def topics(self) -> set[str]:
        """Return the names of the topics."""
        return set(self._counts)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the numbers of the partitions of a topic, None if it does not exist."""
        return set(range(self._counts[topic])) if topic in self._counts else None


class PythonLibrary:
    """Three interfaces of assignors: a dictionary of metadata, of subscriptions, and a list."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._decode_subscription: Any
        self._assignment: Any
        self._subscription: Any = None
        self._has_instances = self._find("protocol.consumer.metadata") is not None
        self._tells_generation = package == "kafka"
        if self._has_instances:  # kafka-python 3
            module = self._import("protocol.consumer.metadata")
            self._decode_subscription = module.ConsumerProtocolSubscription.decode
            self._assignment = module.ConsumerProtocolAssignment
            return
        protocol = self._import("coordinator.protocol").ConsumerProtocol
        if isinstance(protocol, list):  # kafka-python 2.2 and 2.3: one class per version
            protocol = protocol[0]
        self._decode_subscription, self._assignment = protocol.METADATA.decode, protocol.ASSIGNMENT
        if self._find("coordinator.subscription") is not None:
            self._subscription = self._import("coordinator.subscription").Subscription

    def assign(self, name: str, group: Mapping[str, Any]) -> dict[str, list[tuple[str, int]]]:
        """Encode and decode the members' subscriptions, and assign the partitions."""
        received = [self._received(name, member) for member in group["members"]]
        counts = {
            topic: properties["partitions"] if isinstance(properties, dict) else properties
            for topic, properties in group["topics"].items()
        }
        members: Any = received
        if not self._has_instances:
            members = {one.member_id: self._with_instance_id(one) for one in received}
        assigned = self._new_assignor(name).assign(Topics(counts), members)
        return {
            member: [tuple(tp) for tp in self._assignment.decode(_encoded(sent)).partitions()]
            for member, sent in assigned.items()
        }

    def _received(self, name: str, member: Mapping[str, Any]) -> SimpleNamespace:
        """Return a member of the JoinGroup response with its decoded subscription."""
        own = self._new_assignor(name)
        owned, generation = member.get("owned") or [], member.get("generation")
        if owned or generation is not None:
            topics: dict[str, list[int]] = {}
            for topic, partition in owned:
                topics.setdefault(topic, []).append(partition)
            sent = self._assignment(0, list(topics.items()), b"")
            self._notify(own, name, self._assignment.decode(_encoded(sent)), generation)
        subscription = own.metadata(set(member["topics"]))
        return SimpleNamespace(
            member_id=member["id"],
            group_instance_id=member.get("instance_id"),
            metadata=self._decode_subscription(_encoded(subscription)),
        )

    def _notify(self, own: Any, name: str, assignment: Any, generation: int | None) -> None:
        """Pass the earlier assignment to the assignor of a member, as its consumer does."""
        generation = -1 if generation is None else generation
        if self._has_instances:
            own.on_assignment(assignment, generation)
            return
        own.on_assignment(assignment)
        if self._tells_generation and name == "sticky":
            own.on_generation_assignment(generation)

    def _with_instance_id(self, member: SimpleNamespace) -> Any:
        if self._subscription is None:
            return member.metadata
        return self._subscription(member.metadata, member.group_instance_id)

    def _new_assignor(self, name: str) -> Any:
        """Return an assignor with its own state, which older releases keep in the class."""
        cls = assignor_class(self._package, name)
        return cls() if self._has_instances else type(cls.__name__, (cls,), {})

    def _import(self, module: str) -> Any:
        return importlib.import_module(f"{self._package}.{module}")

    def _find(self, module: str) -> Any:
        try:
            return self._import(module)
        except ModuleNotFoundError:
            return None


def _encoded(message: Any) -> bytes:
    encoded: bytes = message.encode()
    return encoded


def _answer(library: PythonLibrary, line: str) -> dict[str, Any]:
    request = json.loads(line)
    try:
        return library.assign(request["assignor"], request["group"])
    except Exception as error:  # noqa: BLE001 - any exception is a result of the library
        return {"failed": type(error).__name__, "reason": str(error)}


def _read(lines: "queue.SimpleQueue[str | None]") -> None:
    """Queue the input lines. After the last line, end the process, even during a call."""
    for line in sys.stdin:
        lines.put(line)
    lines.put(None)
    time.sleep(_GRACE_SECONDS)
    os._exit(0)


def _main() -> None:
    logging.disable(logging.CRITICAL)
    output = sys.stdout
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    with redirect_stdout(sys.stderr):
        library = PythonLibrary(sys.argv[1])
        library.assign("range", {"topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]})
        threading.Thread(target=_read, args=[lines], daemon=True).start()
        print("ready", file=output, flush=True)
        while (line := lines.get()) is not None:
            print(json.dumps(_answer(library, line)), file=output, flush=True)


if __name__ == "__main__":
    _main()
