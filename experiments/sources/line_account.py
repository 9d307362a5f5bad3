"""Record, for each line of a file, the rule that reads it or the problem that it has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from kassay.experiments.sources.capture_contents import DocumentRows
from kassay.experiments.sources.table_rows import Notice, ParsedTable
from kassay.reference.documents.files import error_at
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.errors import InputError

UNKNOWN_LINE = "the line is neither a row of a table nor a known message"
"""Message for an unknown line that is not below a table."""


@dataclass(frozen=True, slots=True)
class LineUse:
    """Rule that reads a line, or that ignores the line as noise."""

    line: int
    rule: str
    is_noise: bool = False


@dataclass(frozen=True, slots=True)
class LineProblem:
    """Problem in a line that a rule reads, or in ``count`` lines that no rule reads.

    ``group`` is the affected group, or None for all groups. ``is_foreign`` is true for a complete
    value or record of another kassay command, or of a tool that kassay does not know.
    """

    line: int
    message: str
    group: str | None = None
    text: str = ""
    count: int = 0
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """Uses and problems of the lines in a file."""

    name: str
    uses: Sequence[LineUse]
    problems: Sequence[LineProblem]

    @property
    def is_used(self) -> bool:
        """Return whether the file contains data that a rule uses."""
        return any(not use.is_noise for use in self.uses)

    def __str__(self) -> str:
        """Format the account, with one output line per range of lines with the same rule."""
        return "\n".join(self._runs())

    def error(self, problem: LineProblem) -> InputError:
        """Convert a problem to an InputError with the file name, line number and text."""
        if problem.message.startswith(f"{self.name}:"):
            return InputError(problem.message)
        return error_at(self.name, problem.line, problem.message, problem.text)

    def lines(self) -> Iterator[int]:
        """Yield the line numbers of all uses and problems. A number can occur twice."""
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
    """Content of a capture, with the rule or the problem of each line.

    ``contents`` has the data of documents and metrics, one object per cluster. ``kinds`` and
    ``kind_tables`` have the documents and tables of groups that are not consumer groups.
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
        """Return whether the text has only complete values or records that no rule reads."""
        problems = self.account.problems
        is_foreign = bool(problems) and all(problem.is_foreign for problem in problems)
        return is_foreign and not self.account.is_used
