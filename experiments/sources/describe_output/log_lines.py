"""Distinguish log messages from damaged rows in the output of ``kafka-consumer-groups.sh``."""

import re
from collections.abc import Set as AbstractSet

from kassay.experiments.sources.describe_output.headers import Header

# First words of messages on standard error, which 2>&1 adds to the output.
_MESSAGE_STARTS = (
    "TRACE DEBUG INFO WARN WARNING Warning ERROR Error FATAL Note NOTE Option Could.not Picked.up "
    "SLF4J log4j OpenJDK Java.HotSpot Exception.in.thread Caused.by Suppressed No.topic"
).replace(" ", "|")
_IGNORABLE = re.compile(
    r"\s*(\[?\d{2,4}[-/:]\d\d[-/:]\d\d|[A-Z][a-z]{2} \d{1,2}, \d{4} \d|"
    rf"({_MESSAGE_STARTS})(?=[\s:(]|$)|"
    r"at [\w.$/<>]+\(|[\w.$]+(Exception|Error)(?=[\s:]|$)|\.\.\. \d+ more|[$>#] )"
)
_LOG_MESSAGE = re.compile(r" (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) |\((org|kafka)\.[\w.$]+\)\s*$")
_TIMESTAMP = re.compile(r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d")
_NUMBER = re.compile(r"-|-?[0-9]+,?")
_MIN_NUMBERS = 3


def is_ignorable(content: str) -> bool:
    """Return whether a line is a log message, a stack trace line or a shell prompt."""
    return bool(_IGNORABLE.match(content))


def contains_log_text(last_cell: str) -> bool:
    """Return whether the last cell of a table row contains a log message."""
    return bool(_LOG_MESSAGE.search(last_cell) or _TIMESTAMP.search(last_cell))


def resembles_row(content: str, header: Header, first_words: AbstractSet[str]) -> bool:
    """Return whether a line may be a damaged row of the table above the line.

    Such a line must not be ignored.
    """
    words = content.split()
    if words[0] in first_words:
        return True
    numbers = sum(bool(_NUMBER.fullmatch(word)) for word in words)
    return numbers >= min(_MIN_NUMBERS, len(header.names) - 1) and not _IGNORABLE.match(content)
