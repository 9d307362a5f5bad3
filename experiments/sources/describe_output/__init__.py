"""Parser for the output of ``kafka-consumer-groups.sh --describe``, Kafka 0.9 and later."""

from kassay.experiments.sources.describe_output.parser import parse_text
from kassay.experiments.sources.describe_output.typed_rows import (
    MemberRow,
    Notice,
    OffsetRow,
    ParsedTable,
    ParsedText,
    ResetRow,
    StateRow,
)

__all__ = [
    "MemberRow",
    "Notice",
    "OffsetRow",
    "ParsedTable",
    "ParsedText",
    "ResetRow",
    "StateRow",
    "parse_text",
]
