"""Content of a text: tables with typed rows, and notices of the tool."""

from dataclasses import dataclass

from kassay.experiments.sources.describe_output.headers import TableKind
from kassay.experiments.sources.describe_output.typed_rows import TableRow


@dataclass(frozen=True, slots=True)
class Notice:
    """A message of the tool. Its kind is ``empty``, ``rebalancing``, ``missing`` or ``error``."""

    line: int
    kind: str
    group: str | None
    text: str


@dataclass(frozen=True, slots=True)
class ParsedTable:
    """Table of ``kafka-consumer-groups.sh`` in a text."""

    kind: TableKind
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ParsedText:
    """Tables and notices of ``kafka-consumer-groups.sh`` in a text."""

    tables: tuple[ParsedTable, ...]
    notices: tuple[Notice, ...]
