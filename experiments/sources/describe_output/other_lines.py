"""Lines between and around the rows: which may be passed over, and which must not."""

import re
from collections.abc import Set as AbstractSet

from kassay.experiments.sources.describe_output.headers import Header

# What programs print when the output was taken with 2>&1, and prompts.
_WORDS = (
    "TRACE DEBUG INFO WARN WARNING Warning ERROR Error FATAL Note NOTE Option Could.not Picked.up "
    "SLF4J log4j OpenJDK Java.HotSpot Exception.in.thread Caused.by Suppressed No.topic"
).replace(" ", "|")
_STRAY = re.compile(
    r"\s*(\[?\d{2,4}[-/:]\d\d[-/:]\d\d|[A-Z][a-z]{2} \d{1,2}, \d{4} \d|"
    rf"({_WORDS})(?=[\s:(]|$)|"
    r"at [\w.$/<>]+\(|[\w.$]+(Exception|Error)(?=[\s:]|$)|\.\.\. \d+ more|[$>#] )"
)
_LOGGED = re.compile(r" (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) |\((org|kafka)\.[\w.$]+\)\s*$")
_TIMESTAMP = re.compile(r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d")
_FIGURE = re.compile(r"-|-?[0-9]+,?")
_MANY_FIGURES = 3


def is_ignorable(content: str) -> bool:
    """Say whether a line is a log line, a stack trace's or a prompt.

    Examples
    --------
    >>> is_ignorable("[2024-05-01 10:00:00,001] WARN Connection to node -1 could not be made")
    True
    >>> is_ignorable("orders  0  17")
    False
    """
    return bool(_STRAY.match(content))


def runs_into_a_row(last_cell: str) -> bool:
    """Say whether a log line was written on behind a row, and so stands in its last cell.

    Examples
    --------
    >>> runs_into_a_row("app[2024-05-01 10:00:00,001] WARN Connection lost")
    True
    >>> runs_into_a_row("app-2024-05-01")
    False
    """
    return bool(_LOGGED.search(last_cell) or _TIMESTAMP.search(last_cell))


def resembles_a_row(content: str, header: Header, first_words: AbstractSet[str]) -> bool:
    """Say whether a line that is no row may once have been one: it must not be passed over."""
    words = content.split()
    if words[0] in first_words:
        return True
    figures = sum(bool(_FIGURE.fullmatch(word)) for word in words)
    return figures >= min(_MANY_FIGURES, len(header.names) - 1) and not _STRAY.match(content)
