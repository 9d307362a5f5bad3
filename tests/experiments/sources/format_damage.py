"""Damage of samples of all formats: of characters, lines, and values of JSON."""

import json
import re

from tests.stored_cases import stored_cases

_PATTERNS = stored_cases("format_damage")


def _at(pattern, replace):
    """Return a change of one match of a pattern. ``replace`` is a text or a function."""

    def change(text, seeded):
        found = list(re.finditer(pattern, text))
        if not found:
            return text
        match = seeded.choice(found)
        new = match.expand(replace) if isinstance(replace, str) else replace(match, seeded)
        return text[: match.start()] + new + text[match.end() :]

    return change


def _line(change):
    def apply(text, seeded):
        lines = text.split("\n")
        at = seeded.choice([n for n, line in enumerate(lines) if line.strip()])
        return "\n".join([*lines[:at], *change(lines[at], seeded), *lines[at + 1 :]])

    return apply


def _cut(line, seeded):
    return line[: seeded.randrange(1, max(2, len(line.rstrip())))]


LOG = "[2026-03-01 10:00:00,001] WARN Connection lost (org.apache.kafka.clients.NetworkClient)"
TEXT = {
    **{name: _at(*change) for name, change in _PATTERNS["text"].items()},
    "text cut inside a line": lambda text, s: text[: s.choice(_inside(text))],
    "start cut": lambda text, s: text[s.choice(_inside(text)) :],
    "line cut": _line(lambda line, s: [_cut(line, s)]),
    "line cut, with an ellipsis": _line(lambda line, s: [_cut(line, s) + "..."]),
    "line broken by a log line": _line(
        lambda line, s: [_cut(line, s) + LOG, line[len(line) // 2 :]]
    ),
    "log line behind": _line(lambda line, _: [line.rstrip() + LOG]),
    "number replaced": _at(r"(?<=[\s\[:])\d+(?=[\s,\]}])", lambda m, _: "x" * len(m[0])),
    "unknown table above": lambda text, _: f"GROUP TOPIC PARTITION FOO BAR\nshop x 1 2 3\n{text}",
    "unknown row below": lambda text, _: f"{text.rstrip()}\nshop orders 9 zz 3 4 c-9 /10.0.0.9\n",
    "unknown JSON below": lambda text, _: text.rstrip() + '\n{"members": 3, "lost": [1]}\n',
    "half of the text again": lambda text, s: text + text[: s.choice(_inside(text))],
}
"""Damage of every format, as functions of a text and a seeded generator."""


def _inside(text):
    return [n for n in range(2, len(text) - 1) if "\n" not in text[n - 1 : n + 1]]


JSON = {
    **{name: _at(*change) for name, change in _PATTERNS["json"].items()},
    "single quotes": lambda text, _: text.replace('"', "'"),
    "value of another type": lambda text, _: json.dumps(text) + "\n",
}
"""Damage of JSON."""
