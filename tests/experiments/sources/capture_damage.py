"""Harmless wrappings of captures, and damage, as functions of lines and a seeded generator."""

import json
import re

from tests.stored_cases import stored_cases

LOG = (
    "[2026-03-01 10:00:00,001] WARN [Consumer clientId=c] Connection to node -1 could not be "
    "established. (org.apache.kafka.clients.NetworkClient)"
)


def _above(text):
    return lambda lines, _: [*text.split("\n"), *lines]


def _below(text):
    return lambda lines, _: [*lines, *text.split("\n")]


def _each(change):
    return lambda lines, seeded: [change(line, seeded) for line in lines]


def _between(text):
    def insert(lines, seeded):
        at = seeded.randrange(len(lines) + 1)
        return [*lines[:at], *text.split("\n"), *lines[at:]]

    return insert


def _wrap(width):
    def wrap(lines, _):
        parts = []
        for line in lines:
            content = line.rstrip()
            parts += [content[at : at + width] for at in range(0, len(content), width)] or [""]
        return parts

    return wrap


_AROUND = stored_cases("lines_around_captures")
ANYWHERE = {
    **{name: _above(text) for name, text in _AROUND["above"].items()},
    **{name: _below(text) for name, text in _AROUND["below"].items()},
    "fences": lambda lines, _: ["```", *lines, "```"],
    "fence with a language": lambda lines, _: ["```console", *lines, "```", ""],
    "script": lambda lines, _: ["Script started on 2026-03-01", *lines, "Script done."],
    "log line between": _between(LOG),
    "blank lines": lambda lines, _: ["", "", *lines, "", ""],
    "CRLF": _each(lambda line, _: line + "\r"),
    "byte order mark": lambda lines, _: ["\ufeff" + lines[0], *lines[1:]],
    "mail": lambda lines, _: [
        "On Mon, Mar 1, 2026 at 10:00 AM Bob <bob@example.com> wrote:",
        *lines,
        "-- ",
        "Bob",
    ],
    "greeting": lambda lines, _: ["Hi all,", *lines, "Best regards,", "Bob"],
    "HTML": lambda lines, _: ["<pre>" + lines[0].replace('"', "&quot;"), *lines[1:], "</pre>"],
    "mark of direction": lambda lines, _: ["\u200e" + lines[0], *lines[1:]],
    "bracketed paste": lambda lines, _: ["\x1b[?2004h" + lines[0], *lines[1:], "\x1b[?2004l"],
}
"""Harmless additions to all formats."""

TABLES = {
    "quotes": _each(lambda line, _: f"> {line}"),
    "two quotes": _each(lambda line, _: f">> {line}"),
    "colours of a line": _each(lambda line, _: f"\x1b[1m{line}\x1b[0m"),
    "colours of a word": _each(
        lambda line, _: re.sub(r"(\w+)", "\x1b[01;31m\\1\x1b[m", line, count=1)
    ),
    "docker compose": _each(lambda line, _: f"kafka-1  | {line}"),
    "time stamps": _each(
        lambda line, seeded: f"2026-03-01T10:00:00.{seeded.randrange(10**9):09}Z {line}"
    ),
    "prefix of kubectl": _each(lambda line, _: f"[pod/kafka-0/kafka] {line}"),
    "grep -H": _each(lambda line, _: f"describe.txt:{line}"),
    "cat -n": lambda lines, _: [f"{n:6}\t{line}" for n, line in enumerate(lines, 1)],
    "less -N": lambda lines, _: [f"{n:7} {line}" for n, line in enumerate(lines, 1)],
    "numbered list": lambda lines, _: [f"{n}. {line}" for n, line in enumerate(lines, 1)],
    "nl": lambda lines, _: [f"{n:2}> {line}" for n, line in enumerate(lines, 1)],
    "comments": _each(lambda line, _: f"# {line}"),
    "quoted lines": _each(lambda line, _: f'    "{line}",'),
    "bars on both sides": _each(lambda line, _: f"| {line} |"),
    "indentation": _each(lambda line, _: f"    {line}"),
    "double spacing": lambda lines, _: [each for line in lines for each in (line, "")],
    "spaces at the end": _each(lambda line, _: line + "   "),
    "no spaces at the end": _each(lambda line, _: line.rstrip()),
    "no-break spaces": _each(lambda line, _: line.replace("  ", " \xa0")),
    "pasted twice": lambda lines, _: [*lines, "", *lines],
    "no blank line": lambda lines, _: [*(line for line in lines if line.strip()), ""],
    "journalctl": _each(lambda line, _: f"Mar 01 10:00:00 b1 kafka[12]: {line}" if line else ""),
    "pdsh": _each(lambda line, _: f"b1: {line}" if line else ""),
    "bat": lambda lines, _: [
        "       \u2502 File: describe.txt",
        *(f"{n:4}   \u2502 {line}" for n, line in enumerate(lines, 1)),
    ],
    "difference": lambda lines, _: ["--- /dev/null", "+++ b/x", *("+" + line for line in lines)],
    "erased ends": _each(lambda line, _: line + "\x1b[K"),
    "list of lines": lambda lines, _: [
        '"stdout_lines": [',
        *(f"    {json.dumps(line)}," for line in lines),
        "]",
    ],
    "signs of line ends": _each(lambda line, _: line + "$"),
    "logger behind": _each(lambda line, _: f"{line} (kafka.admin.Lag)"),
    "backslashes": _each(lambda line, _: line + " \\"),
    "bar at the end": _each(lambda line, _: f"{line:<160}\u2502"),
    "record separator": lambda lines, _: ["\x1e" + lines[0], *lines[1:]],
    **{
        prefix: _each(lambda line, seeded, form=prefix: form.format(seeded.randrange(10)) + line)
        for prefix in _AROUND["prefixes"]
    },
    "wrapped at 80": _wrap(80),
    "wrapped at 100": _wrap(100),
    "wrapped at 132": _wrap(132),
}
"""Harmless changes of tables."""

WORDS = {
    "tabs": _each(lambda line, _: "\t".join(line.split())),
    "single spaces": _each(lambda line, _: " ".join(line.split())),
    "bars": _each(lambda line, _: f"| {' | '.join(line.split())} |" if line.strip() else ""),
    "Markdown": lambda lines, _: [
        each
        for line in lines
        for each in (
            [f"| {' | '.join(line.split())} |", "|---" * len(line.split()) + "|"]
            if "PARTITION" in line
            else [f"| {' | '.join(line.split())} |" if line.strip() else ""]
        )
    ],
}


def _html(line, tag="td"):
    cells = "".join(f"<{tag}>{word}</{tag}>" for word in line.split())
    return f"<tr>{cells}</tr>" if cells else ""


def _index(lines, _):
    """Number the rows below a header, as a printed data frame does."""
    start = next(n for n, line in enumerate(lines) if "PARTITION" in line)
    return [f"{n - start - 1 if n > start else '':<3} {line}" for n, line in enumerate(lines)]


WORDS |= {
    "HTML": lambda lines, _: ["<table>", *map(_html, lines), "</table>"],
    "HTML on one line": lambda lines, _: ["<table>" + "".join(map(_html, lines)) + "</table>"],
    "HTML, a line per cell": lambda lines, _: [
        *("<table>\n" + "\n".join(map(_html, lines)).replace("<td>", "\n<td>")).split("\n"),
        "</table>",
    ],
    "MediaWiki": lambda lines, _: [
        '{| class="wikitable"',
        *(each for line in lines if line for each in ("|-", "| " + " || ".join(line.split()))),
        "|}",
    ],
    "escaped signs": lambda lines, _: [
        f"| {' | '.join(line.split())} |".replace("-", "\\-") if line.strip() else ""
        for line in lines
    ],
    "full-width bars": lambda lines, _: [
        f"| {' | '.join(line.split())} |".replace("|", "\uff5c") if line.strip() else ""
        for line in lines
    ],
    "CSV with blank columns and rows": lambda lines, _: [
        *(",".join(line.split()) + ",," if line.strip() else "" for line in lines),
        ",,,,",
    ],
    "index": _index,
}
WORDS["emphasis"] = lambda lines, _: [
    re.sub(r"(?<=\| )(\S+)(?= \|)", r"**\1**" if "PARTITION" in line else r"`\1`", line)
    for line in WORDS["Markdown"](lines, _)
]
"""Harmless changes of tables whose cells are words, none of them blank."""
_RESULT = {"changed": True, "rc": 0, "cmd": ["kafka-consumer-groups.sh"], "stderr": ""}
IN_JSON = {
    "text": lambda lines, _: [json.dumps(_RESULT | {"stdout": "\n".join(lines)})],
    "lines": lambda lines, _: json.dumps({"stdout_lines": lines}, indent=4).split("\n"),
    "assignment": lambda lines, _: ["lag = " + json.dumps({"stdout": "\n".join(lines)})],
    "Ansible": lambda lines, _: [
        "ok: [b1] => {",
        *json.dumps(_RESULT | {"stdout": "\n".join(lines), "stdout_lines": lines}, indent=4).split(
            "\n"
        )[1:],
    ],
    "list": lambda lines, _: json.dumps(lines, indent=2).split("\n"),
    "list on one line": lambda lines, _: [json.dumps(lines)],
    "Python": lambda lines, _: [repr(_RESULT | {"stdout": "\n".join(lines)})],
    "bytes of Python": lambda lines, _: [repr("\n".join(lines).encode())],
    "JavaScript": lambda lines, _: ["{", "  stdout: " + repr("\n".join(lines)) + ",", "}"],
    "quotes of an editor": lambda lines, _: [
        "{\u201cstdout\u201d: \u201c" + "\\n".join(lines) + "\u201d}"
    ],
    "jq without -r": lambda lines, _: [json.dumps("\n".join(lines))],
    "container": _each(lambda line, _: json.dumps({"log": line + "\n", "stream": "stdout"})),
}
"""JSON that has a capture as text."""


def is_row(line):
    """Return whether a line is a row of a table."""
    other = ("PARTITION", "Consumer group", "\tat ", "Error", "Exception")
    return bool(re.search(r"\d", line)) and not any(word in line for word in other)


def _at_row(change):
    """Return a change of one row. The function gets the row and returns lines."""

    def apply(lines, seeded):
        rows = [at for at, line in enumerate(lines) if is_row(line)]
        if not rows:
            return lines
        at = seeded.choice(rows)
        return [*lines[:at], *change(lines[at], seeded), *lines[at + 1 :]]

    return apply


def _at_header(change):
    def apply(lines, seeded):
        at = next((n for n, line in enumerate(lines) if "PARTITION" in line), None)
        return lines if at is None else [*lines[:at], *change(lines[at], seeded), *lines[at + 1 :]]

    return apply


def _cut(line, seeded):
    # A cut between the tasks of a Streams member cannot be seen.
    length = len(line.partition("ACTIVE")[0].rstrip())
    return [line[: seeded.randrange(1, max(2, int(length * 0.8)))]]


def _without_cell(line, seeded):
    words = line.split()
    at = seeded.randrange(len(line.partition("ACTIVE")[0].split()))
    return [" ".join(words[:at] + words[at + 1 :])]


def _blank_cell(line, seeded):
    # A cell can be a part of a name with blanks, and the last one is cut elsewhere.
    words = list(re.finditer(r"(?<!\S )(?<!\S)\S+(?= {2,}\S)", line))
    if not words:
        return [line]
    match = seeded.choice(words)
    return [line[: match.start()] + " " * len(match[0]) + line[match.end() :]]


def _swapped(line, seeded):
    words = line.split()
    kinds = [word.isdigit() for word in words]
    places = [at for at in range(len(words) - 1) if kinds[at] is not kinds[at + 1]]
    if not places:
        return [line]
    at = seeded.choice(places)
    words[at], words[at + 1] = words[at + 1], words[at]
    return ["  ".join(words)]


def _other_number(line, seeded):
    numbers = list(re.finditer(r"(?<=\s)\d+(?=\s)", line))
    if not numbers:
        return [line]
    match = seeded.choice(numbers)
    return [line[: match.start()] + "x" * len(match[0]) + line[match.end() :]]


def _split(line, seeded):
    at = seeded.randrange(1, max(2, len(line.rstrip())))
    return [line[:at] + LOG, line[at:]]


def _glued(lines, seeded):
    rows = [n for n, line in enumerate(lines[:-1]) if is_row(line) and is_row(lines[n + 1])]
    if not rows:
        return lines
    at = seeded.choice(rows)
    return [*lines[:at], lines[at].rstrip() + lines[at + 1], *lines[at + 2 :]]


def _without_row(lines, seeded):
    """Remove a row that others follow."""
    rows = [at for at, line in enumerate(lines[:-2]) if is_row(line.split(maxsplit=1)[-1])]
    at = seeded.choice(rows[1:] or [len(lines)])
    return [*lines[:at], *lines[at + 1 :]]


def _start_lost(lines, seeded):
    """Remove the start of a padded row. Without other rows, this cannot be seen."""
    rows = [at for at, line in enumerate(lines) if is_row(line) and "   " in line[:40]]
    at = seeded.choice(rows) if len(rows) > 1 else None
    return [line[2:] if number == at else line for number, line in enumerate(lines)]


def _other_moment(lines, seeded):
    """Append the text again, in which a row has other numbers."""

    def moved(line):
        return re.sub(r"(?<=\s)(\d+)(?=\s)", lambda match: str(int(match[1]) + 1), line)

    rows = [n for n, line in enumerate(lines) if is_row(line)]
    changed = {seeded.choice(rows)} if rows else set()
    return [*lines, "", *(moved(line) if n in changed else line for n, line in enumerate(lines))]


def _cut_text(lines, seeded):
    """Cut a text inside a line, because the end of a line looks like the end of a text."""
    text = "\n".join(lines)
    places = [at for at in range(1, len(text)) if "\n" not in text[at - 1 : at + 1]]
    return text[: seeded.choice(places)].split("\n")


DAMAGE = {
    "no header": _at_header(lambda *_: []),
    "header cut on the left": _at_header(lambda line, _: [line[3:]]),
    "header cut on the right": _at_header(_cut),
    "unknown column": _at_header(lambda line, _: [line.replace("PARTITION", "PARTITIO")]),
    "row cut": _at_row(_cut),
    "row cut, of a topic named like a command": _at_row(lambda *_: ["kafka-events 0 10 60"]),
    "rows left out, in words": _at_row(lambda *_: ["8 more partitions like this"]),
    "control character": _at_row(lambda line, _: [line[:3] + "\x00" + line[3:]]),
    "direction": _at_row(lambda line, _: [line[:3] + "\u202e" + line[3:]]),
    "blank in a name": _at_row(lambda line, _: [line[:3] + " " + line[3:]]),
    "letter for a digit": _at_row(lambda line, _: [re.sub("0(?=[0-9a-f]{6}-)", "O", line)]),
    "thousands": _at_row(lambda line, _: [re.sub(r"(?<=\s)(\d+)(?=\s)", r"1.00\1", line)]),
    "removed line of a difference": _at_row(lambda line, _: ["- " + line, "+ " + line]),
    "level in front of a row": _at_row(lambda line, _: [f"WARN {line}"]),
    "tag around a row": _at_row(lambda line, _: [f"<b>{line}</b>"]),
    "ditto mark": _at_row(lambda line, _: [re.sub(r"^\S+", '"', line)]),
    "cut notice": lambda lines, _: ["Warning: Consumer group 'shop' is rebal", *lines],
    "tables side by side": _each(lambda line, _: f"{line:<150} \u2502 {line}"),
    "row without a cell": _at_row(_without_cell),
    "blank cell": _at_row(_blank_cell),
    "cells swapped": _at_row(_swapped),
    "number replaced": _at_row(_other_number),
    "row twice": _at_row(lambda line, _: [line, line]),
    "row broken by a log line": _at_row(_split),
    "log line in front of a row": _at_row(lambda line, _: [f"{LOG} {line}"]),
    "prompt in front of a row": _at_row(lambda line, _: [f"$ {line}"]),
    "comment in front of a row": _at_row(lambda line, _: [f"# {line}"]),
    "warning in front of a row": _at_row(lambda line, _: [f"WARNING: {line}"]),
    "log line behind a row": _at_row(lambda line, _: [line + LOG]),
    "log line behind a row, with a space": _at_row(lambda line, _: [f"{line.rstrip()} {LOG}"]),
    "rows on one line": _glued,
    "line left out of cat -n": lambda lines, s: _without_row(TABLES["cat -n"](lines, s), s),
    "line left out of less -N": lambda lines, s: _without_row(TABLES["less -N"](lines, s), s),
    "line left out of grep -n": lambda lines, s: _without_row(
        [f"{n}:{line}" for n, line in enumerate(lines, 1)], s
    ),
    "rows left out, in brackets": _at_row(lambda _, s: [s.choice(["[removed]", "<redacted>"])]),
    "ellipsis": _at_row(
        lambda line, s: [line[: max(3, len(line.partition("ACTIVE")[0]) // 2)] + "..."]
    ),
    "text cut": _cut_text,
    "blank line, then a cut row": _at_row(lambda line, s: ["", *_cut(line, s)]),
    "other moment": _other_moment,
    "no rows above": lambda lines, s: lines[s.randrange(1, max(2, len(lines))) :],
    "rows left out": _at_row(lambda *_: ["..."]),
    "rows left out, with a comment": _at_row(lambda *_: ["# ..."]),
    "rows left out, with a number": _at_row(lambda *_: ["(3 more rows)"]),
    "row in bold": _at_row(lambda line, _: [f"**{line}**"]),
    "row struck": _at_row(lambda line, _: [f"~~{line}~~"]),
    "start of a padded row": _start_lost,
    "sign in front of a row": _at_row(lambda line, _: [f"-{line}", f"+{line}"]),
    "shortened ids": _each(lambda line, _: re.sub(r"-[0-9a-f]{8}-[0-9a-f-]{27}", "-...", line)),
    "hidden ids": _each(lambda line, _: re.sub(r"\S+-[0-9a-f]{8}-[0-9a-f-]{27}", "xxxx", line)),
    "empty group": lambda lines, _: [
        *lines,
        *dict.fromkeys(
            f"Consumer group '{line.split()[0]}' has no active members."
            for line in lines
            if is_row(line) and ", " not in line  # a name with blanks
        ),
    ],
}
"""Damage of tables, which must become an error unless the groups stay the same."""


def _json_lines(change):
    def apply(lines, seeded):
        rows = [at for at, line in enumerate(lines) if line.strip()]
        at = seeded.choice(rows)
        return [*lines[:at], *change(lines[at], seeded), *lines[at + 1 :]]

    return apply


JSON_DAMAGE = {
    "members null": _json_lines(
        lambda line, _: [re.sub(r'"tasks": \[.*\]', '"tasks": null', line)]
    ),
    "prompt in front": _json_lines(lambda line, _: [f"bob@b1:~$ {line}"]),
    "list as text": _json_lines(
        lambda line, _: [re.sub(r'"(partitions|tasks)": (\[.*\])', r'"\1": "[]"', line)]
    ),
    "page of a list": _json_lines(lambda line, _: [line.replace("{", '{"has_more": true, ', 1)]),
    "line cut": _json_lines(_cut),
    "text cut": DAMAGE["text cut"],
    "unknown value": _json_lines(lambda line, _: [line, json.dumps({"other": 1})]),
    "constant": _json_lines(lambda line, _: [re.sub(r": \d+", ": NaN", line, count=1)]),
    "number as text": _json_lines(
        lambda line, _: [re.sub(r"(?<=partition.: )(\d+)", r'"\1"', line, count=1)]
    ),
    "key renamed": _json_lines(lambda line, _: [re.sub('"topic[a-z_]*"', '"tpic"', line, count=1)]),
    "comma": _json_lines(lambda line, _: [line.rstrip()[:-1] + ",}"]),
    "log line inside": _json_lines(
        lambda line, s: [line[: len(line) // 2], LOG, line[len(line) // 2 :]]
    ),
}
"""Damage of JSON."""
