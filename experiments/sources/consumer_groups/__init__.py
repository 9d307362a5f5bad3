"""The text that ``kafka-consumer-groups.sh --describe`` prints, from release 0.9 on."""

from experiments.sources.consumer_groups.rows import (
    MemberRow,
    OffsetCheckerRow,
    OffsetRow,
    ResetRow,
    StateRow,
)
from experiments.sources.consumer_groups.text import Notice, Parsed, Table, parse_text

__all__ = [
    "MemberRow",
    "Notice",
    "OffsetCheckerRow",
    "OffsetRow",
    "Parsed",
    "ResetRow",
    "StateRow",
    "Table",
    "parse_text",
]
