"""Read a capture line by line. A rule uses each line, or the line is an error.

A text may contain outputs of several tools, messages and prompts in any order. The first rule of
`_RULES` that fits uses a line. Other lines wait until the whole text is read, because they can be
parts of a row that a terminal wrapped, or rows without header.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

from kassay.experiments.sources import table_checks, table_headers
from kassay.experiments.sources.capture_contents import DocumentRows, FoundText, merge_rows
from kassay.experiments.sources.clean_lines import FORMS, Line, clean_lines, is_prose, noise_rule
from kassay.experiments.sources.kind_captures import (
    connect_result,
    is_connect_status,
    is_connector_status,
)
from kassay.experiments.sources.line_account import (
    UNKNOWN_LINE,
    Account,
    LineProblem,
    LineUse,
    ReadCapture,
)
from kassay.experiments.sources.other_tool_descriptions import READERS
from kassay.experiments.sources.table_rows import Cells, Notice, build_row
from kassay.experiments.sources.tool_documents import (
    METRIC,
    UnknownFormatError,
    has_data,
    hides_json,
    hides_metric,
    read_json_value,
    read_tool_line,
    texts_in_json,
)
from kassay.experiments.sources.unfinished_table import (
    UnfinishedTable,
    has_blank,
    names_group,
    parsed_table,
)
from kassay.reference.documents.kind_documents import Kind, KindDocument, kind_document_or_error
from kassay.reference.model.errors import InputError

_NOTICES = [(kind, FORMS[f"notice: {kind}"]) for kind in ("empty", "rebalancing", "missing")]
_NOTICES += [("missing", FORMS["notice: not found"])]
_OTHER_GROUP = re.compile(r"Error: (Share|Streams) group '")
_RECORD = re.compile(r"Dumping .*__consumer_offsets.*|\| offset: \d+ .*")
_RECORD_MESSAGE = "the file contains records of kafka-dump-log.sh; read it with kassay history"
_GROUP_OPTION = FORMS["group option"]
_TOOL = re.compile(r"\b(kafka-[a-z-]+(\.sh|\.bat)?|kafkactl|rpk|kaf|kcl|confluent) ")
_COMMANDS = ("prompt", "command")
_LOOSE = (
    *(*_COMMANDS, "message", "setting", "version", "mail or chat", "heading", "greeting"),
    *("markup", "file name"),
)
_PROMPT, _MAX_PROMPTS = FORMS["prompt alone"], 20
_CELLS = FORMS["cells of a damaged row"]
"""Cells of a damaged row that starts like a command, such as ``kafka-events 0 10``."""
_HIDDEN = re.compile(r"onsumer group [`'\"]|\S\s+\[\d[\d ]*\]$")
"""Pattern of a part of a notice, or of a member's partitions as kaf prints them."""
_FIRST_WORDS = ("Topic:", "Group ID:", "group:", "Metadata for ")
_LEFT_OUT = "lines left out"
_UNREADABLE = re.compile("[\ufffd\x00-\x08\x0b\x0e-\x1f\x7f\u202a-\u202e]")
"""Control characters, and the character that replaces bytes that are not UTF-8."""
_ROW_PART = FORMS["part of a row or message"]
_TEXT_RULES = (*_COMMANDS, "mail or chat", "greeting")
_JSON_IN_LINE = re.compile(r"(?!^-)\S\s*(?=[{]\s*([\"']|$)|\[\s*([{]|$))")
_TAG = re.compile(r"</?\w[^>]*>")
_PARTS = ("start", "end", "row", "cell")
_MARKUP = [[FORMS[f"{kind} table: {part}"] for part in _PARTS] for kind in ("HTML", "wiki")]
_MAX_TEXTS = 40
_MIN_CELLS = 3
"""Minimum number of words of a text in JSON that can be a row of a capture."""
_KINDS = frozenset(Kind) - {Kind.CONSUMER}
_KIND_TABLES = (table_headers.TableKind.SHARE, table_headers.TableKind.STREAMS)
_MAX_BROKEN = 200
"""Number of errors after which kassay reads only JSON values on one line, to save time."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Line that no rule has used yet, with the table and the group id above it."""

    line: Line
    table: UnfinishedTable | None
    group: str | None


class _Reader:
    """Reader of one text. Each rule returns the number of lines that it uses."""

    def __init__(self, text: str, name: str, group: str | None) -> None:
        self.name = name
        self.default_group = group
        self.lines = clean_lines(text, _starts_data, _starts_group)
        self.uses: list[LineUse] = []
        message = "lines above are missing, as the numbers of the lines show"
        self.problems = [LineProblem(one.number, message) for one in self.lines if one.follows_gap]
        self.tables: list[UnfinishedTable] = []
        self.notices: list[Notice] = []
        self.contents: dict[str | None, list[DocumentRows]] = {}
        self.kinds: list[tuple[str | None, KindDocument | InputError]] = []
        self.connectors: list[Mapping[str, object]] = []
        self.enclosed: list[ReadCapture] = []  # contents of texts in JSON
        self.notes: list[tuple[str | None, str]] = []
        self.waiting: list[_Waiting] = []
        self.widths: dict[int, int] = {}
        texts = {line.text.strip() for line in self.lines}
        prompts = [text for text in texts if _PROMPT.fullmatch(text)][:_MAX_PROMPTS]
        self.prompts = [
            one for one in prompts if any(text != one and text.startswith(one) for text in texts)
        ]
        self.lists: set[int] = set()  # lines of commands that list names, and of names
        self.current: UnfinishedTable | None = None
        self.group: str | None = None  # named by the last notice or command

    def read(self) -> ReadCapture:
        """Apply the rules to all lines, check the tables and return the content."""
        at = 0
        while at < len(self.lines):
            used = next((used for rule in _RULES if (used := rule(self, at))), 0)
            if not used:
                self.waiting.append(_Waiting(self.lines[at], self.current, self.group))
            at += max(used, 1)
        self._read_waiting()
        self.problems.extend(table_checks.rows_after_damage(self.problems, self.tables))
        self.problems.extend(table_checks.contradictions(self.tables))
        if not (self.notices or self.problems):
            self.problems.extend(table_checks.headers_without_rows(self.tables))
        self.problems.extend(table_checks.consumers_of_two_groups(self.tables))
        for problem, is_shown in table_checks.wrong_lags(self.tables):
            if is_shown:
                note = f"{self.name}:{problem.line}: {problem.message}"
                self.notes.append((problem.group, note))
            else:
                self.problems.append(problem)
        cut = (
            None
            if self.current is None
            else table_checks.cut_row(self.lines, self.tables, self.current)
        )
        if cut is not None:
            self.problems.append(cut)
        contents = []
        for parts in self.contents.values():
            try:
                contents.append(merge_rows(parts, self.name))
            except InputError as error:
                self.problems.append(LineProblem(1, str(error)))
        tables = [parsed_table(one) for one in self.tables]
        account = Account(
            self.name,
            sorted(self.uses, key=lambda use: use.line),
            sorted(self.problems, key=lambda problem: problem.line),
        )
        described = [one for one in tables if one.kind not in _KIND_TABLES]
        own = ReadCapture(
            [*described, *(table for one in contents for table in one.tables())],
            self.notices,
            contents,
            account,
            self.notes,
            self.kinds,
            [one for one in tables if one.kind in _KIND_TABLES],
            self.connectors,
        )
        joined: dict[str, Any] = {
            field.name: [one for read in (own, *self.enclosed) for one in getattr(read, field.name)]
            for field in fields(own)
            if field.name != "account"
        }
        return replace(own, **joined)

    def use(self, at: int, rule: str, count: int = 1, *, is_noise: bool = False) -> int:
        """Record that a rule uses or ignores lines, and return the number of lines."""
        for line in self.lines[at : at + count]:
            self.uses.append(LineUse(line.number, rule, is_noise))
            if not is_noise and (found := _UNREADABLE.search(line.text)):
                message = f"the line has the character {found[0]!a}; save the text as UTF-8"
                self.problems.append(LineProblem(line.number, message, text=line.text))
        return count

    def note(self, line: int, group: str | None, text: str) -> None:
        """Add a note about a line, unless the group already has the note."""
        if all(known != group or not note.endswith(text) for known, note in self.notes):
            self.notes.append((group, f"{self.name}:{line}: {text}"))

    def refuse(self, at: int, message: str, count: int = 1, *, is_foreign: bool = False) -> int:
        """Record lines as an error, and return the number of lines."""
        line = self.lines[at]
        text = "" if message.startswith(self.name) else line.text
        self.problems.append(
            LineProblem(line.number, message, text=text, count=count, is_foreign=is_foreign)
        )
        return count

    def notice(self, at: int) -> int:
        """Read a message of Kafka's tool about a group."""
        first = self.lines[at].text.strip()
        is_error = first.startswith("Error: ") and not _OTHER_GROUP.match(first)
        if "onsumer group" not in first and not is_error:
            return 0
        for count in (1, 2):  # a terminal can break the line
            content = "".join(line.text for line in self.lines[at : at + count]).strip()
            for kind, form in _NOTICES:
                if match := form.fullmatch(content):
                    return self._add_notice(at, kind, match["group"], content, count)
        return self._add_notice(at, "error", None, first, 1) if is_error else 0

    def _add_notice(self, at: int, kind: str, group: str | None, content: str, count: int) -> int:
        self.notices.append(Notice(self.lines[at].number, kind, group or self.group, content))
        if group is not None:
            self._enter(group)
        return self.use(at, f"notice: {kind}", count)

    def record(self, at: int) -> int:
        """Record a line of ``kafka-dump-log.sh`` as an error."""
        if not _RECORD.fullmatch(self.lines[at].text.strip()):
            return 0
        return self.refuse(at, _RECORD_MESSAGE, is_foreign=True)

    def json_value(self, at: int) -> int:
        """Read the lines of a JSON value."""
        lines, start = self.lines, at
        if len(self.problems) > _MAX_BROKEN:  # the time would grow with the square of the length
            lines, start = self.lines[at : at + 1], 0
        found = read_json_value(lines, start, name=self.name)
        if found is None:
            return self._json_behind_text(at)
        if self._kind_documents(found.value, at):
            return self.use(at, "document of another kind of group", found.count)
        is_unknown = found.error is None or isinstance(found.error, UnknownFormatError)
        return (self._text_in_json(at, found) if is_unknown else 0) or self._take(at, found)

    def _json_behind_text(self, at: int) -> int:
        """Read a JSON value that follows other text in its line, such as a time."""
        line = self.lines[at]
        start = _JSON_IN_LINE.search(line.text)
        if start is None or self._hides_row(line.text[: start.start() + 1]):
            return 0
        rest = replace(line, text=line.text[start.start() + 1 :])
        inner = _Reader("", self.name, self.default_group)
        inner.lines = [rest, *self.lines[at + 1 : at + 2_000]]
        count = inner.json_value(0)
        if not count or inner.problems or all(use.is_noise for use in inner.uses):
            return 0
        self.lines[at] = rest
        return self.json_value(at)

    def _text_in_json(self, at: int, found: FoundText) -> int:
        """Read JSON values that contain captures as strings, such as a log in JSON."""
        values, count = [], 0
        value: FoundText | None = found
        while value is not None and value.value is not None:
            values.append(value.value)
            count += value.count
            is_last = at + count >= len(self.lines)
            value = None if is_last else read_json_value(self.lines, at + count, name=self.name)
        return self._inner(texts_in_json(values), "text in JSON", at, count)

    def _inner(self, texts: Sequence[str], rule: str, at: int, count: int) -> int:
        number = self.lines[at].number
        name = f"{self.name}:{number}"
        if len(texts) > _MAX_TEXTS:
            return 0
        inner = [_Reader(text, name, self.default_group).read() for text in texts]
        used = [one for one in inner if one.account.is_used]
        if not used:
            return 0
        for one in inner:
            self.problems.extend(
                LineProblem(number, str(one.account.error(each)), each.group)
                for each in one.account.problems
                if one in used or len(each.text.split()) >= _MIN_CELLS or _CELLS.search(each.text)
            )
        self.enclosed.extend(used)
        return self.use(at, rule, count)

    def markup_table(self, at: int) -> int:
        form = next((one for one in _MARKUP if one[0].match(self.lines[at].text)), None)
        if form is None:
            return 0
        rest = enumerate(self.lines[at:], start=1)
        count = next((count for count, line in rest if form[1].search(line.text)), 0)
        if not count:
            return self.refuse(at, "the table has no end")
        text = "\n".join(line.text for line in self.lines[at : at + count])
        table, *behind = form[1].split(form[0].sub("", text, count=1))
        rows = [*map(form[3].split, form[2].split(table)), *([one] for one in behind)]
        cells = [[" ".join(_TAG.sub(" ", one).split()) for one in row] for row in rows]
        table = "".join(f"|{'|'.join(row[1:])}|\n" if row[1:] else f"{row[0]}\n" for row in cells)
        return self._inner([html.unescape(table)], "table in markup", at, count)

    def _take(self, at: int, found: FoundText) -> int:
        """Store the content of lines that a function has read, or record its error."""
        if found.error is not None:
            is_foreign = isinstance(found.error, UnknownFormatError)
            return self.refuse(at, str(found.error), found.count, is_foreign=is_foreign)
        for one in found.contents:
            parts = self.contents.setdefault(one.cluster, [])
            known = parts[-1].partition_counts if parts else {}
            # The lines of the partitions of a topic add nothing to the line of the topic.
            if not one.minimum_counts or any(
                count > known.get(topic, 0) for topic, count in one.minimum_counts.items()
            ):
                parts.append(one)
        return self.use(at, found.rule, found.count, is_noise=found.is_noise)

    def header(self, at: int) -> int:
        texts = [line.text for line in self.lines[at : at + table_headers.MAX_PARTS]]
        header = table_headers.read_header(texts, line=self.lines[at].number)
        if header is None:
            return 0
        if isinstance(header, str):
            self.current = None
            return self.refuse(at, header)
        self.current = UnfinishedTable(header, self.group)
        self.tables.append(self.current)
        if header.kind is table_headers.TableKind.OTHER_OFFSETS:
            message = "a table of offsets has no members; add the option --members"
            return self.refuse(at, message, header.parts)
        return self.use(at, f"header of {self.current.rule}", header.parts)

    def group_text(self, at: int) -> int:
        """Read a description that one of the `READERS` recognises."""
        for read in READERS:
            found = read(self.lines, at, self.name)
            if found is not None:
                if found.group is not None:
                    self._enter(found.group)
                return self._take(at, found)
        return 0

    def row(self, at: int) -> int:
        if self.current is None or not self.lines[at].text.strip():
            return 0
        cells = self.current.split(self.lines[at].text)
        if cells is None:
            return 0
        self.current.add(cells, self.lines[at].number, self.lines[at].text)
        return self.use(at, self.current.rule)

    def tool_line(self, at: int) -> int:
        """Read a line that another tool prints about a topic or metric."""
        found = read_tool_line(self.lines[at], name=self.name)
        if found is None:
            return 0
        follows = self.waiting and self.waiting[-1].line.number == self.lines[at].number - 1
        if follows and found.is_weak:
            return 0  # rather the end of a row that a terminal wrapped
        if found.rule == METRIC and found.error is None and at == len(self.lines) - 1:
            return self.refuse(at, table_checks.MAY_BE_CUT)
        return self._take(at, found)

    def noise(self, at: int) -> int:
        """Ignore a line of noise, and read the group id from a command or prompt."""
        text = self.lines[at].text
        rule = noise_rule(text)
        if rule is None and _TOOL.search(text) and _GROUP_OPTION.search(text):
            rule = "command"  # behind a prompt of another form
        elif rule is None and any(text.strip().startswith(one) for one in self.prompts):
            rule = "prompt"
        if rule in (None, _LEFT_OUT) or _HIDDEN.search(text.strip()) or self._hides_row(text):
            return 0
        if rule in _LOOSE and self.tables and _CELLS.search(text):
            return 0
        if rule in _COMMANDS and "--list" in text:
            self.lists.add(self.lines[at].number)
        if rule in _COMMANDS:
            match = _GROUP_OPTION.search(text)
            if match is not None or rule == "prompt":
                group = None if match is None else match[1].strip("\"'")
                # Neither a variable of the shell nor an id joined with a prompt names the group.
                self._enter(None if group is None or "$" in group else group)
        return self.use(at, rule, is_noise=True)

    def _enter(self, group: str | None) -> None:
        """Set the group id for the following tables without a group id."""
        if group != self.group and self.current is not None and not names_group(self.current):
            self.current = None
        self.group = group

    def _kind_documents(self, value: object, at: int) -> bool:
        """Add documents of share groups, Streams or Connect, and return whether there are any."""
        while isinstance(value, list | dict):
            if isinstance(value, dict) and self._kind_document(value, at):
                return True
            if isinstance(value, list) and len(value) > 1:
                every = all(map(is_connector_status, value))
                return every and all(self._kind_document(one, at) for one in value)
            inner = list(filter(has_data, value.values() if isinstance(value, dict) else value))
            value = inner[0] if len(inner) == 1 else None
        return False

    def _kind_document(self, value: Mapping[str, object], at: int) -> bool:
        if is_connect_status(value):
            self.kinds.append(connect_result(value, where=self.name, id=self.default_group))
            return True
        if is_connector_status(value):
            self.connectors.append({"status": value})
            return True
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in _KINDS:
            return False
        self.kinds.append(kind_document_or_error(value, f"{self.name}:{self.lines[at].number}"))
        return True

    def _hides_row(self, text: str) -> bool:
        """Return whether a line contains a row, a metric or JSON after other text."""
        if hides_json(text):
            return True
        starts = [match.start() for match in re.finditer(r"(?<=\s)\S|(?<=[*~_#>])\w", text)]
        layouts = {table.header.names: table for table in self.tables}.values()
        return any(hides_metric(text[start:]) for start in starts) or any(
            table.header.kind in _DATA_TABLES and table.split(text[start:]) is not None
            for table in layouts
            for start in starts
        )

    def _read_waiting(self) -> None:
        """Classify the lines that no rule has used: wrapped rows, sentences or errors."""
        names = self._names()
        data = {use.line for use in self.uses if not use.is_noise or use.rule == "table rule"}
        for run in _runs(self.waiting):
            at = self._end_of_row(run)
            while at < len(run):
                line = run[at].line
                is_left_out = noise_rule(line.text) == _LEFT_OUT
                if is_left_out and not data.isdisjoint((line.number - 1, line.number + 1)):
                    message = "rows are left out here; give the complete output"
                    at += self.refuse(line.number - 1, message)
                    continue
                count = self._wrapped(run, at) or self._without_header(run[at])
                is_text = self._is_prose(run[at], names) or self._is_apart(run[at], names)
                if not count and (is_left_out or is_text):
                    rule = _LEFT_OUT if is_left_out else "prose"
                    count = self.use(line.number - 1, rule, is_noise=True)
                at += count or self._refuse_row(run[at])

    def _is_prose(self, waiting: _Waiting, names: frozenset[str]) -> bool:
        text = waiting.line.text
        is_sentence = is_prose(text, names, is_below=waiting.table is not None)
        return (is_sentence or self._continues_prose(waiting)) and not self._hides_row(text)

    def _is_apart(self, waiting: _Waiting, names: frozenset[str]) -> bool:
        """Return whether a line is text that is separate from all data.

        It stands above all tables, or below known noise, such as a command or a message.
        """
        line, words = waiting.line, waiting.line.text.split()
        above = next((use for use in self.uses if use.line == line.number - 1), None)
        is_below_noise = above is not None and above.rule in _TEXT_RULES
        is_output = is_below_noise and not _TOOL.search(self.lines[line.number - 2].text)
        is_first = all(use.is_noise for use in self.uses if use.line < line.number)
        return (
            (is_first or is_below_noise)
            and (len(words) > 1 or is_output)
            and names.isdisjoint(words)
            and not _ROW_PART.search(line.text)
            and not self._hides_row(line.text)
        )

    def _continues_prose(self, waiting: _Waiting) -> bool:
        """Return whether a line is a title, a name in a list, or the continuation of a sentence."""
        line = waiting.line
        above = next((use for use in self.uses if use.line == line.number - 1), None)
        is_prose_above = above is not None and above.rule in ("prose", "greeting", "mail or chat")
        if line.number - 1 in self.lists and re.fullmatch(r"[\w.-]+", line.text.strip()):
            self.lists.add(line.number)
            return True
        is_data_above = above is None or "table" in above.rule or above.rule == METRIC
        if not is_data_above and re.fullmatch(r"\d{1,3}", line.text.strip()):
            return True  # the status of the command or request
        if above is not None and above.rule == "stack trace":
            return line.text.startswith("    ")  # the code of the line above it
        is_title = is_prose_above or waiting.table is None
        return is_title and bool(re.fullmatch(r"[A-Za-z][a-z]+( [A-Za-z]+){0,3}", line.text))

    def _names(self) -> frozenset[str]:
        rows = [row for table in self.tables for row in table.rows]
        fields = ("group", "topic", "consumer_id", "client_id", "instance_id", "owner")
        found = {getattr(row, each, None) for row in rows for each in fields}
        return frozenset(name for name in found if name)

    def _wrapped(self, run: Sequence[_Waiting], at: int) -> int:
        """Join wrapped lines into a row, and return the number of joined lines.

        A terminal wraps a line at its width, or at a space that is then lost. Return 0 if several
        ways to join the lines give different valid rows.
        """
        table = run[at].table
        if table is None or table.header.is_csv:
            return 0
        width = max(self._width(table), *(len(one.line.text) for one in run))
        for count in range(min(table_headers.MAX_PARTS, len(run) - at), 1, -1):
            parts = [one.line.text for one in run[at : at + count]]
            if any(noise_rule(part) for part in parts):
                continue
            ways = [("", " ") if len(part) == width else (" ",) for part in parts[:-1]]
            found: list[Cells] = []
            for gaps in product(*ways):
                text = parts[0] + "".join(
                    gap + part for gap, part in zip(gaps, parts[1:], strict=True)
                )
                cells = table.split(text)
                if cells is not None:
                    found.append(cells)
            found = [cells for cells in found if not has_blank(cells)] or found
            rows = [build_row(table.header.kind, cells, line=0) for cells in found]
            if found and all(row == rows[0] for row in rows):
                table.add(found[0], run[at].line.number)
                for one in run[at : at + count]:
                    self.uses.append(LineUse(one.line.number, f"{table.rule}, wrapped row"))
                return count
            if found:
                return 0
        return 0

    def _end_of_row(self, run: Sequence[_Waiting]) -> int:
        """Join a line to the row above it, and return the number of joined lines."""
        line, table = run[0].line, run[0].table
        if table is None or table.header.is_csv:
            return 0
        at = next((n for n, row in enumerate(table.rows) if row.line == line.number - 1), None)
        if at is None:
            return 0
        start = self.lines[line.number - 2].text
        last = table.header.names[-1]
        cells = table.split(start + line.text)
        if (
            table.header.parts == 1
            or len(start) < max(len(line.text), self._width(table))
            or start.endswith(" ")
            or cells is None
            or has_blank(cells)
            or any(cells[name] != value for name, value in table.cells[at].items() if name != last)
        ):
            return 0
        table.rows[at] = build_row(table.header.kind, cells, line=line.number - 1)
        table.cells[at] = cells
        self.uses.append(LineUse(line.number, f"{table.rule}, wrapped row"))
        return 1

    def _width(self, table: UnfinishedTable) -> int:
        """Return the length of the longest line of a table, as the width of the terminal."""
        if id(table) not in self.widths:
            numbers = [table.header.line, *(row.line for row in table.rows)]
            lengths = (len(self.lines[number - 1].text.rstrip()) for number in numbers)
            self.widths[id(table)] = max(lengths)
        return self.widths[id(table)]

    def _without_header(self, waiting: _Waiting) -> int:
        """Read a row without a header, if exactly one other table has a header that fits."""
        line = waiting.line
        fitting: dict[tuple[str, ...], tuple[UnfinishedTable, Cells]] = {}
        for table in self.tables:
            cells = None if table is waiting.table else table.split(line.text)
            if cells is not None:
                fitting.setdefault(table.header.names, (table, cells))
        if len(fitting) != 1:
            return 0
        table, cells = next(iter(fitting.values()))
        if not (names_group(table) or waiting.group or table.group is None):
            return 0  # above the command that names the group
        if waiting.table is not None and len(waiting.table.header.names) >= len(cells):
            return 0  # a damaged row of the table above it
        found = next(
            (
                one
                for one in self.tables
                if one.header.names == table.header.names
                and (names_group(one) or one.group == waiting.group)
            ),
            None,
        )
        if found is None:
            found = UnfinishedTable(table.header, waiting.group)
            self.tables.append(found)
        found.add(cells, line.number)
        self.uses.append(LineUse(line.number, f"{table.rule}, row without header"))
        self.note(
            line.number,
            cells.get("GROUP") or found.group,
            f"a row without a header is read as a row of the {table.rule} in line "
            f"{table.header.line}",
        )
        return 1

    def _refuse_row(self, waiting: _Waiting) -> int:
        line, table = waiting.line, waiting.table
        rows = [] if table is None else table.rows
        groups = {getattr(row, "group", None) for row in rows}
        named = [group for group in groups if group and line.text.strip().startswith(f"{group} ")]
        if table is None:
            message = UNKNOWN_LINE
        elif table.header.kind is table_headers.TableKind.STREAMS and len(line.text.split()) > (
            table.header.names.index("ASSIGNMENTS")
        ):
            message = "the assignment is truncated or has an unknown form"
        elif table.header.is_csv:
            message = table_headers.csv_row_problem(line.text, table.header)
        else:
            message = f"the line is not a complete row of the {table.rule} above it"
        group = max(named, key=len) if named else None
        self.problems.append(LineProblem(line.number, message, group, line.text, count=1))
        return 1


_RULES: tuple[Callable[[_Reader, int], int], ...] = (
    _Reader.notice,
    _Reader.record,
    _Reader.markup_table,
    _Reader.json_value,
    _Reader.group_text,
    _Reader.header,
    _Reader.row,
    _Reader.tool_line,
    _Reader.noise,
)
"""Rules in the order in which the reader tries them."""
_DATA_TABLES = frozenset(table_headers.TableKind) - {
    table_headers.TableKind.LISTING,
    table_headers.TableKind.DELETION,
    table_headers.TableKind.RESET,
    table_headers.TableKind.OTHER_OFFSETS,
}


def read_capture(text: str, *, name: str, group: str | None = None) -> ReadCapture:
    r"""Read the text of a capture. ``name`` is the file name in errors.

    ``group`` is the id of a Connect cluster, because its responses contain no id.
    """
    return _Reader(text, name, group).read()


def _starts_group(text: str) -> bool:
    return text.startswith(_FIRST_WORDS) or isinstance(
        table_headers.read_header([text], line=1), table_headers.Header
    )


def _starts_data(text: str) -> bool:
    """Return whether a line can start data, such as a table or a JSON value."""
    content = text.strip()
    return (
        table_headers.starts_table(text)
        or content.startswith(('{"', "[{", *_FIRST_WORDS))
        or content in ("{", "[")
        or hides_metric(content)
        or any(form.fullmatch(content) for _, form in _NOTICES)
    )


def _runs(waiting: Sequence[_Waiting]) -> Iterator[list[_Waiting]]:
    """Yield lists of consecutive lines that follow the same table."""
    run: list[_Waiting] = []
    for one in waiting:
        if run and (one.line.number != run[-1].line.number + 1 or one.table is not run[-1].table):
            yield run
            run = []
        run.append(one)
    if run:
        yield run
