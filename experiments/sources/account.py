"""Account of an input: what became of each of its lines.

A line is used by a table or another rule, is known noise, or is an error. No line is only skipped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from kassay.experiments.sources.document_rows import DocumentRows
from kassay.experiments.sources.table_rows import Notice, ParsedTable
from kassay.reference.documents.input_files import error_at, read_data_file
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.errors import InputError

UNKNOWN_LINE = "the line is neither a row of a table nor a known message"
"""Message of problems below no table."""


@dataclass(frozen=True, slots=True)
class LineUse:
    """What became of one line: the rule that used it, or that knows it as noise."""

    line: int
    rule: str
    is_noise: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Lines that no rule accounts for.

    ``group`` is the only group concerned, None for all. ``is_foreign`` is set for complete values
    and records that another program reads, or that are output of a tool that kassay does not know.
    """

    line: int
    message: str
    text: str
    group: str | None = None
    count: int = 1
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """Account of the lines of one file, in the order of the lines."""

    name: str
    uses: Sequence[LineUse]
    problems: Sequence[Problem]

    def __str__(self) -> str:
        """Return one line of text per run of lines with the same rule."""
        return "\n".join(self._runs())

    def error(self, problem: Problem) -> InputError:
        """Return a problem as an error with file, line and text."""
        if problem.message.startswith(f"{self.name}:"):
            return InputError(problem.message)
        return error_at(self.name, problem.line, problem.message, problem.text)

    def lines(self) -> Iterator[int]:
        """Yield the numbers of the lines that are used, noise or errors, with repetitions."""
        yield from (use.line for use in self.uses)
        for problem in self.problems:
            yield from range(problem.line, problem.line + problem.count)

    def _runs(self) -> Iterator[str]:
        found = [
            (line, f"error: {one.message.removeprefix(f'{self.name}:{one.line}: ')}")
            for one in self.problems
            for line in range(one.line, one.line + one.count)
        ]
        found += [
            (one.line, f"{'ignored' if one.is_noise else 'read'}: {one.rule}") for one in self.uses
        ]
        for text, run in groupby(sorted(found), key=lambda each: each[1]):
            lines = [line for line, _ in run]
            first, last = lines[0], lines[-1]
            yield f"{self.name}:{first}{f'-{last}' if last > first else ''}: {text}"


@dataclass(frozen=True, slots=True)
class ReadCapture:
    """Content of a capture, and the account of its lines.

    ``contents`` are those of documents and metrics, one per cluster. ``kinds`` are documents of
    groups that are no consumer groups, and ``kind_rows`` the cells of their tables.
    """

    tables: Sequence[ParsedTable]
    notices: Sequence[Notice]
    contents: Sequence[DocumentRows]
    account: Account
    notes: Sequence[tuple[str | None, str]] = ()  # with the group, None for all
    kinds: Sequence[tuple[str | None, KindDocument | InputError]] = ()
    kind_tables: Sequence[ParsedTable] = ()
    connectors: Sequence[Mapping[str, object]] = ()  # status of single connectors

    @property
    def is_foreign(self) -> bool:
        """Return whether the text has nothing except complete output of unknown tools."""
        return (
            bool(self.account.problems)
            and all(problem.is_foreign for problem in self.account.problems)
            and all(use.is_noise for use in self.account.uses)
        )


_NOISE_FORMS = [
    (rule, re.compile(form)) for rule, form in read_data_file(Path(__file__).with_name("noise.txt"))
]
_WORD = re.compile(r"[(\"'`*]*([a-z]{2,}('[a-z]+)?|a)[)\"'`*.,:;!?]*")
_CAPITAL_WORD = re.compile(r"[(\"'`*]*([A-Za-z]{2,}('[a-z]+)?|[aAI])[)\"'`*.,:;!?]*")
_NO_PROSE = re.compile(
    r"onsumer group|active members|is rebalancing|does not exist|PartitionCount|\w\{\w+=|\":|"
    r"[\]}],?$|(^|\s)/[\w.]+(\s|$)|[0-9a-f]{8}-[0-9a-f]{2}|\w[(:]\d+(,\d+)*|(^|\s)-?\d+\s+-?\d+(\s|$)"
)
_PHRASE = re.compile(r"[A-Za-z][a-z']+(\s[A-Za-z']+){0,7}\s?[!?.]+|[-*\u2022]\s+[A-Za-z' ]+")
"""Words with the end of a sentence or the sign of a list."""
_PROSE_WORDS = 3
# Words of tables that are no words of a sentence.
_TABLE_WORDS = frozenset({"none", "unknown", "range", "roundrobin", "sticky", "uniform", "true"})


def noise_rule(text: str) -> str | None:
    """Return the name of the rule that knows a line as noise, or None.

    Examples
    --------
    >>> noise_rule("bash-4.4$ exit"), noise_rule("orders 0 10 60 50 c-1 /10.0.0.1 c")
    ('prompt', None)
    """
    content = text.strip()
    return next((rule for rule, form in _NOISE_FORMS if form.fullmatch(content)), None)


def is_prose(text: str, names: frozenset[str]) -> bool:
    """Return whether a line is a sentence of its author, and no damaged row, message or value.

    A sentence has at least three words in lower case, or three words and no other text. Names of
    the input do not count.

    Examples
    --------
    >>> is_prose("This is what I see on broker 3:", frozenset())
    True
    >>> is_prose("orders range Stable 2", frozenset({"orders"}))
    False
    """
    start = text.strip()
    if _NO_PROSE.search(text) or any(start.startswith(f"{name} ") for name in names):
        return False
    words = text.lstrip("-*+ >").split()
    other = [word for word in words if word.strip("()\"'`*.,:;!?") not in names | _TABLE_WORDS]
    lower = sum(bool(_WORD.fullmatch(word)) for word in other)
    if len(words) and lower >= _PROSE_WORDS and 2 * lower >= len(words):
        return True
    if other and len(other) == len(words) and _PHRASE.fullmatch(start):
        return True
    capital = sum(bool(_CAPITAL_WORD.fullmatch(word)) for word in other)
    return capital >= _PROSE_WORDS and capital + len(words) - len(other) == len(words)
