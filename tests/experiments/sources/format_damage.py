"""Damage of samples of all formats: of characters, lines, and values of JSON."""

import json
import re


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
    "text cut inside a line": lambda text, s: text[: s.choice(_inside(text))],
    "start cut": lambda text, s: text[s.choice(_inside(text)) :],
    "line cut": _line(lambda line, s: [_cut(line, s)]),
    "line cut, with an ellipsis": _line(lambda line, s: [_cut(line, s) + "..."]),
    "line broken by a log line": _line(
        lambda line, s: [_cut(line, s) + LOG, line[len(line) // 2 :]]
    ),
    "log line behind": _line(lambda line, _: [line.rstrip() + LOG]),
    "digit lost in a topic": _at(r"orders(?=\W)", "orders?"),
    "number replaced": _at(r"(?<=[\s\[:])\d+(?=[\s,\]}])", lambda m, _: "x" * len(m[0])),
    "number with a letter": _at(r"(?<=[\s\[:])\d+(?=[\s,\]}])", r"\g<0>o"),
    "number twice": _at(r"(?<=partition\": )\d+|(?<=[\[(])\d+(?=[\])])", r"\g<0> \g<0>"),
    "id with a blank": _at(r"(?<=[\s\"=])c-1-\w{4}", "c -1-4b0b"),
    "id cut": _at(r"c-1-4b0be0d1-3f67-4ac5-9d6b-7b1a6a6a2a01(?=[\s\",])", "c-1-4b0b"),
    "separator lost": _at(r"(?<=\S)(  +| \| |;|\t|, )(?=\S)", ""),
    "separator twice": _at(r" \| |;|(?<=\d),(?= ?\d)|(?<=\d), (?=\")", r"\g<0>\g<0>"),
    "control character": _at(r"orders|shop", "\x07\\g<0>"),
    "lines glued": _at(r"(?<=\S)\n+(?=\S)", ""),
    "unknown table above": lambda text, _: f"GROUP TOPIC PARTITION FOO BAR\nshop x 1 2 3\n{text}",
    "unknown row below": lambda text, _: f"{text.rstrip()}\nshop orders 9 zz 3 4 c-9 /10.0.0.9\n",
    "unknown JSON below": lambda text, _: text.rstrip() + '\n{"members": 3, "lost": [1]}\n',
    "half of the text again": lambda text, s: text + text[: s.choice(_inside(text))],
    "assignment not closed": _at(r"[\])](?=[\s,})]|$)", ""),
    "assignment opened twice": _at(r"[\[(](?=\d|topic)", r"\g<0>\g<0>"),
    "header renamed": _at(r"(?i)\bpartition(?=\s|\||;)", "PARTITIO"),
    "header cut": _at(r"(?i)\b(topic|partition|consumer.id|member.id)(?=[\s|;])", "TOP"),
}
"""Damage of every format, as functions of a text and a seeded generator."""


def _inside(text):
    return [n for n in range(2, len(text) - 1) if "\n" not in text[n - 1 : n + 1]]


JSON = {
    "brace lost": _at(r"[{}]", ""),
    "bracket lost": _at(r"[\[\]]", ""),
    "quote lost": _at(r'"', ""),
    "colon lost": _at(r'(?<="): ', " "),
    "comma lost": _at(r"(?<=[\d\"}\]]), ?", " "),
    "comma at the end": _at(r"(?<=[\d\"}\]])(?=[}\]])", ","),
    "not a number": _at(r'(?i)(?<="partition": )\d+', "NaN"),
    "fraction": _at(r'(?i)(?<="partition": )\d+', r"\g<0>.5"),
    "flag": _at(r'(?i)(?<="partition": )\d+', "true"),
    "negative": _at(r'(?i)(?<="partition": )\d+', r"-7"),
    "object": _at(r'(?i)(?<="partition": )\d+', '{"number": 1}'),
    "list": _at(r'(?i)(?<="partition": )\d+', "[[0]]"),
    "null partition": _at(r'(?i)(?<="partition": )\d+', "null"),
    "huge": _at(r'(?i)(?<="partition": )\d+', "99999999999999999999"),
    "empty topic": _at(r'(?i)(?<="topic": )"\w+"', '""'),
    "null topic": _at(r'(?i)(?<="topic": )"\w+"', "null"),
    "topic in a list": _at(r'(?i)(?<="topic": )"\w+"', r"[\g<0>]"),
    "number as member": _at(r'"c-1-[^"]+"', "17"),
    "list as member": _at(r'"c-1-[^"]+"', r"[\g<0>]"),
    "key twice": _at(r'"\w*(topic|partition|member|id)\w*": ("[^"]*"|\d+)', r"\g<0>, \g<0>"),
    "list under an unknown key": _at(r'"(members|assignments|offsets|result)"(?=: \[)', '"other"'),
    "error code": _at(r'"(groupId|group_id|group_name|GroupId)": ', r'"error_code": 15, \g<0>'),
    "comment": _at(r"(?<=[\[{])(?=.)", "// comment\n"),
    "single quotes": lambda text, _: text.replace('"', "'"),
    "value of another type": lambda text, _: json.dumps(text) + "\n",
}
"""Damage of JSON."""
