"""Parsed output of ``kafka-consumer-groups.sh``: tables with typed rows, and messages."""

from dataclasses import dataclass

from kassay.experiments.sources.describe_output.headers import TableKind
from kassay.experiments.sources.describe_output.typed_rows import TableRow


@dataclass(frozen=True, slots=True)
class Notice:
    """Message of ``kafka-consumer-groups.sh``, for example that a group is rebalancing.

    The kind is ``empty``, ``rebalancing``, ``missing`` or ``error``.
    """

    line: int
    kind: str
    group: str | None
    text: str


@dataclass(frozen=True, slots=True)
class ParsedTable:
    """Table in the output of ``kafka-consumer-groups.sh``, with typed rows."""

    kind: TableKind
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ParsedText:
    """Tables and messages in one output of ``kafka-consumer-groups.sh``."""

    tables: tuple[ParsedTable, ...]
    notices: tuple[Notice, ...]
