"""Lines of a capture without what terminals, containers and messages add around them.

Removed are colours, quotes as in ``> ``, and a prefix that lines share, such as the name of a
container, a time stamp or the number of the line.
"""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from kassay.reference.documents.input_files import read_data_file

_HEADER_START = re.compile(
    r"(?<=[^\w-])(GROUP|Group|TOPIC|CONSUMER-ID|MEMBER-ID|Cluster|group|Metadata for|Topic)\b"
)
_EMPHASIS = re.compile(r"(?<=\|)\s*(\*\*|`)([^|`*]+)\1\s*(?=\|)")
_LINE_END = re.compile(r"\r?\n|\r")
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>78]"
)
_INVISIBLE = str.maketrans(
    dict.fromkeys("\x1e\ufeff\u200b\u200c\u200d\u200e\u200f\u2060\xad")
    | dict.fromkeys("\xa0\u2002\u2003\u2007\u2009\u202f", " ")
    | {"\u2502": "|", "\u2503": "|", "\u2010": "-", "\u2011": "-"}
)
_LONE_DASH = re.compile(r"(?<!\S)[\u2012-\u2015\u2212](?!\S)")
"""Dash that an editor has put in place of a hyphen in a cell."""
_HTML = re.compile(r"</?(pre|code|br|p|span|div)\b[^>\n]*>")
_JSON_TEXT = re.compile(r'".*\\n')
_WRAPPERS = [re.compile(form) for _, form in read_data_file(__package__, "wrappers.txt")]


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a text, without colours and prefixes. The number is that of the original line."""

    number: int
    text: str


def clean_lines(
    text: str, is_start: Callable[[str], bool], is_header: Callable[[str], bool]
) -> list[Line]:
    r"""Return the lines of a text without colours and prefixes.

    A prefix is one if a header or another start of data, as ``is_start`` recognises it, follows it
    in some line, and so is any text in front of a header that the line below it repeats, with other
    numbers. Lines without the prefix stay as they are.

    Examples
    --------
    >>> text = "> GROUP  STATE\n> \x1b[1morders\x1b[0m Stable\n"
    >>> is_start = lambda line: line.startswith("GROUP")
    >>> [line.text for line in clean_lines(text, is_start, is_start)]
    ['GROUP  STATE', 'orders Stable', '']
    """
    if _HTML.search(text):
        text = html.unescape(_HTML.sub("", text))
    contents = [_CONTROL.sub("", line).translate(_INVISIBLE) for line in _LINE_END.split(text)]
    contents = [_LONE_DASH.sub("-", line) for line in contents]
    contents = [_EMPHASIS.sub(r" \2 ", line) if "|" in line else line for line in contents]
    while wrapper := _wrapper(contents, (is_start, is_header)) or _shared_prefix(
        contents, is_header
    ):
        contents = [_without(wrapper, content) for content in contents]
    return [Line(number, content) for number, content in enumerate(contents, start=1)]


def _wrapper(
    contents: Sequence[str], rules: Sequence[Callable[[str], bool]]
) -> re.Pattern[str] | None:
    """Return the form of lines without which a rule knows a start of data."""
    # The quotes of lines in a JSON object belong to the object, those of a text to the text.
    is_json = any(one.endswith("{") or one == "[" or _JSON_TEXT.match(one) for one in contents)
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


def _shared_prefix(
    contents: Sequence[str], is_header: Callable[[str], bool]
) -> re.Pattern[str] | None:
    """Return the form of a text in front of a header and of the line below it."""
    for content, below in pairwise(one for one in contents if one.strip()):
        starts = (match.start() for match in _HEADER_START.finditer(content))
        start = next((at for at in starts if is_header(content[at:])), 0)
        prefix = content[:start].rstrip()
        if not prefix or prefix.endswith('"') or is_header(content):
            continue
        parts = (re.escape(part) for part in re.split(r"\d+|\s+", prefix))
        between = (r"\s+" if gap.isspace() else r"\d+" for gap in re.findall(r"\d+|\s+", prefix))
        shape = "".join(map("".join, zip_longest(parts, between, fillvalue="")))
        form = re.compile(rf"{shape}\s{{0,{start - len(prefix)}}}(?P<text>.*)")
        if form.fullmatch(below):
            return form
    return None


def _without(wrapper: re.Pattern[str], content: str) -> str:
    match = wrapper.fullmatch(content)
    return content if match is None else match["text"]
