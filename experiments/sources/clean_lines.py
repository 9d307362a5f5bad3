"""Remove the text that terminals, containers and mail programs add to captured lines.

It removes colours, quotes as in ``> ``, and a common prefix of lines, such as the name of a
container, a time stamp or a line number. It also finds known noise and sentences.
"""

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise, zip_longest

from kassay.reference.documents.files import read_data_file

FORMS = {name: re.compile(form) for name, form in read_data_file(__package__, "line_forms.txt")}
"""Patterns of lines and of parts of lines, by name."""
_HEADER_START = FORMS["header start"]
_EMPHASIS = re.compile(r"(?<=\|)\s*(\*\*|`)([^|`*]+)\1\s*(?=\|)")
_ESCAPE = re.compile(r"\\(?=[-_*.#])")
_LINE_END = re.compile(r"\r?\n|\r")
_CONTROL = FORMS["control characters"]
_INVISIBLE = str.maketrans(
    dict.fromkeys("\x1e\ufeff\u200b\u200c\u200d\u200e\u200f\u2060\xad")
    | dict.fromkeys(map(chr, (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)), " ")
    | dict.fromkeys("\u2502\u2503\uff5c\xa6\u2758", "|")
    | {"\u2010": "-", "\u2011": "-"}
)
_LONE_DASH = re.compile(r"(?<!\S)[\u2012-\u2015\u2212](?!\S)")
"""Dash by which an editor has replaced a hyphen in a cell."""
_HTML = FORMS["HTML tag"]
_BOX = re.compile("[\u2500\u2501\u2504\u2505\u2508\u2509\u254c\u254d\u2550]")
_BOX_ROW = re.compile("[\u2502-\u257f].*\\w.*[\u2502-\u257f]")
_BARS = re.compile("[\u2502-\u2503\u2506-\u2507\u250a-\u257f]")
_GLUED_FENCE = FORMS["fence beside text"]
_SHARE = 0.8
"""Minimum share of the lines that must have an unknown prefix or suffix."""
_MAX_STARTS = 16
_WORD_START = re.compile(r"(?<=[\s|:>\])}])[^\s|]")
_JSON_TEXT = re.compile(r'".*\\[n"]')
_JSON_ON_LINES = re.compile(r"[{\[]$", re.MULTILINE)
_WRAPPERS = [re.compile(form) for _, form in read_data_file(__package__, "wrappers.txt")]
_SUFFIXES = [form for name, form in FORMS.items() if name.startswith("end: ")]


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a capture without colours and prefixes, with its original line number."""

    number: int
    text: str
    follows_gap: bool = False  # in the numbers that stand in front of the lines


def clean_lines(
    text: str, is_start: Callable[[str], bool], is_header: Callable[[str], bool]
) -> list[Line]:
    r"""Return the lines of a text without colours and without shared prefixes.

    A text is a prefix if a header or another start of data (``is_start``) follows it. It must also
    be a known prefix, or occur in the next line with the same or other numbers.
    """
    if _HTML.search(text):
        text = html.unescape(_HTML.sub("", text))
    contents = [_CONTROL.sub("", line).translate(_INVISIBLE) for line in _LINE_END.split(text)]
    contents = [_GLUED_FENCE.sub("", _LONE_DASH.sub("-", line)) for line in contents]
    contents = [
        _BARS.sub("|", _BOX.sub(" ", line)) if _BOX_ROW.search(line) else line for line in contents
    ]
    contents = [
        _EMPHASIS.sub(r" \2 ", _ESCAPE.sub("", line)) if "|" in line else line for line in contents
    ]
    gaps: set[int] = set()
    while wrapper := (
        _shared_suffix(contents, is_start)
        or _wrapper(contents, (is_start, is_header))
        or _shared_prefix(contents, is_start, is_header)
    ):
        matches = [wrapper.fullmatch(content) for content in contents]
        if "number" in wrapper.groupindex:
            gaps |= _gaps({at: int(one["number"]) for at, one in enumerate(matches) if one})
        contents = [_without(wrapper, content) for content in contents]
        changed = {at for at, match in enumerate(matches) if match and contents[at]}
        if "spaced" in wrapper.groupindex and all(contents[at][0] == " " for at in changed):
            contents = [one[at in changed :] for at, one in enumerate(contents)]
    return [Line(at + 1, content, at in gaps) for at, content in enumerate(contents)]


def _gaps(numbers: Mapping[int, int]) -> set[int]:
    """Return the lines before which the printed line numbers have a gap."""
    steps = {at: (numbers[at] - numbers[before], at - before) for before, at in pairwise(numbers)}
    is_counted = sum(0 < step <= distance for step, distance in steps.values()) * 2 >= len(steps)
    return {at for at, (step, distance) in steps.items() if is_counted and step > distance}


def _shared_suffix(
    contents: Sequence[str], is_start: Callable[[str], bool]
) -> re.Pattern[str] | None:
    """Return the pattern of a suffix that at least 80% of the lines have, or None."""
    filled = [one for one in contents if one.strip()]
    for form in _SUFFIXES:
        found = [match["text"] for one in filled if (match := form.fullmatch(one))]
        if len(found) > 1 and len(found) >= _SHARE * len(filled) and any(map(is_start, found)):
            return form
    return None


def _wrapper(
    contents: Sequence[str], rules: Sequence[Callable[[str], bool]]
) -> re.Pattern[str] | None:
    # The quotes of lines in a JSON object belong to the object, those of a text to the text.
    is_json = any(_JSON_TEXT.match(one) for one in contents) or _has_json("\n".join(contents))
    return next(
        (
            form
            for form in (_WRAPPERS[:-1] if is_json else _WRAPPERS)
            if any(
                is_known(_without(form, content)) and not is_known(content)
                for content in contents
                if form.fullmatch(content)
                for is_known in rules
            )
        ),
        None,
    )


def _has_json(text: str) -> bool:
    for match in islice(_JSON_ON_LINES.finditer(text), _MAX_STARTS):
        with suppress(ValueError, RecursionError):
            json.JSONDecoder().raw_decode(text, match.start())
            return True
    return False


def _shared_prefix(
    contents: Sequence[str], is_start: Callable[[str], bool], is_header: Callable[[str], bool]
) -> re.Pattern[str] | None:
    filled = [one for one in contents if one.strip()]
    for number, (content, below) in enumerate(pairwise(filled), start=1):
        starts = (match.start() for match in _HEADER_START.finditer(content))
        start = next((at for at in starts if is_header(content[at:])), 0)
        others = filled[number : number + 1]
        if not start and content.split(maxsplit=1)[0][:1] == below.split(maxsplit=1)[0][:1]:
            others = filled[number:]
            words = islice(_WORD_START.finditer(content), _MAX_STARTS)
            at_words = (0, *(match.start() for match in words))
            start = next((at for at in at_words if is_start(content[at:])), 0)
        prefix = content[:start].rstrip()
        if not prefix or prefix.endswith('"') or is_header(content):
            continue
        parts = (re.escape(part) for part in re.split(r"\d+|\s+", prefix))
        between = (r"\s+" if gap.isspace() else r"\d+" for gap in re.findall(r"\d+|\s+", prefix))
        shape = "".join(map("".join, zip_longest(parts, between, fillvalue="")))
        if shape.count(r"\d+") == 1:
            shape = shape.replace(r"\d+", r"(?P<number>\d+)")
        form = re.compile(rf"{shape}\s{{0,{start - len(prefix)}}}(?P<text>.*)")
        if sum(bool(form.fullmatch(one)) for one in others) >= _SHARE * len(others):
            return form
    return None


def _without(wrapper: re.Pattern[str], content: str) -> str:
    match = wrapper.fullmatch(content)
    if match is None:
        return content
    is_quoted = "quoted" in wrapper.groupindex
    return match["text"].replace('\\"', '"').replace('""', '"') if is_quoted else match["text"]


_NOISE_FORMS = [(rule, re.compile(form)) for rule, form in read_data_file(__package__, "noise.txt")]
_WORD = re.compile(r"[(\"'`*]*([a-z]{2,}('[a-z]+)?|a)[)\"'`*.,:;!?]*")
_CELL = FORMS["part of a row in a sentence"]
"""Pattern of parts of rows, headers, JSON and messages that no sentence contains."""
_NO_PROSE = FORMS["no sentence"]
_PHRASE = FORMS["short sentence"]
"""Pattern of words that end like a sentence or start like an entry of a list."""
_TIME = re.compile(r"\b\d{1,2}:\d\d(:\d\d)?\b")
_SIGN = re.compile(r"^[^\w/]|[.!?:)]$")
_PROSE_WORDS = 3
# Words of tables that are no words of a sentence.
_TABLE_WORDS = frozenset({"none", "unknown", "range", "roundrobin", "sticky", "uniform", "true"})


def noise_rule(text: str) -> str | None:
    """Return the name of the rule that ignores a line as noise, or None."""
    content = text.strip()
    return next((rule for rule, form in _NOISE_FORMS if form.fullmatch(content)), None)


def is_prose(text: str, names: frozenset[str], *, is_below: bool = False) -> bool:
    """Return whether a line is a sentence that a person wrote, not a damaged row.

    A sentence has at least three words in lower case, or three words and no text that looks like a
    cell. ``names`` of the input do not count as words.
    """
    text = _TIME.sub("", text)
    start = text.strip()
    if not start.isascii() and not re.search("[0-9A-Za-z]", start):
        return True  # rows have digits and names in ASCII
    if _NO_PROSE.search(text) or any(start.startswith(f"{name} ") for name in names):
        return False
    words = text.lstrip("-*+ >").split()
    other = [word for word in words if word.strip("()\"'`*.,:;!?") not in names | _TABLE_WORDS]
    lower = sum(bool(_WORD.fullmatch(word)) for word in other)
    if len(words) and lower >= _PROSE_WORDS and 2 * lower >= len(words):
        return True
    if other and len(other) == len(words) and _PHRASE.fullmatch(start):
        return True
    if is_below and not _SIGN.search(start):
        return False
    return len(other) == len(words) >= _PROSE_WORDS and not _CELL.search(start)
