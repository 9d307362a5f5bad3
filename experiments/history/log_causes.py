"""Causes of rebalances that the reasons in the messages of logs state."""

import re
from enum import StrEnum
from functools import lru_cache

from kassay.reference.documents.input_files import read_data_file


class Cause(StrEnum):
    """Cause of a rebalance in a log."""

    JOIN = "join"
    RESTART = "restart"
    LEAVE = "leave"
    SESSION_TIMEOUT = "session timeout"
    POLL_TIMEOUT = "poll timeout"
    REBALANCE_TIMEOUT = "rebalance timeout"
    METADATA = "metadata"
    SUBSCRIPTION = "subscription"
    COOPERATIVE = "cooperative"
    STATIC_MEMBER = "static member"
    PROTOCOL = "protocol"
    COORDINATOR = "coordinator"
    OTHER_MEMBER = "other member"
    UNKNOWN = "unknown"


def entries_of_causes(kind: str) -> list[tuple[Cause, str]]:
    """Return the causes with their patterns or texts of a kind, in the order of the data file."""
    entries = read_data_file(__package__, "log_causes.txt")
    return [(Cause(cause), text) for each, cause, text in entries if each == kind]


_CAUSES = [(cause, re.compile(text, re.IGNORECASE)) for cause, text in entries_of_causes("pattern")]
_RANDOM_PART = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def cause_of(reason: str | None) -> Cause:
    """Return the cause that the reason in a message states."""
    # Without the random parts of member ids, a log has few reasons.
    return _cause_of_text(_RANDOM_PART.sub("", reason)) if reason else Cause.UNKNOWN


@lru_cache(maxsize=4096)
def _cause_of_text(reason: str) -> Cause:
    return next((cause for cause, pattern in _CAUSES if pattern.search(reason)), Cause.UNKNOWN)


@lru_cache(maxsize=4096)
def client_of(member: str) -> str:
    """Return the client id, or the group instance id, that a member id starts with.

    A member id without it, as in the consumer protocol, is returned unchanged.
    """
    return _RANDOM_PART.sub("", member) or member
