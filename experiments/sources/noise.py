"""Lines of a capture that contain no data: known noise, and sentences of its author."""

import re

from kassay.experiments.sources.text_lines import FORMS
from kassay.reference.documents.input_files import read_data_file

_NOISE_FORMS = [(rule, re.compile(form)) for rule, form in read_data_file(__package__, "noise.txt")]
_WORD = re.compile(r"[(\"'`*]*([a-z]{2,}('[a-z]+)?|a)[)\"'`*.,:;!?]*")
_CELL = FORMS["part of a row in a sentence"]
"""Parts of rows, headers, JSON values and messages that sentences do not contain."""
_NO_PROSE = FORMS["no sentence"]
_PHRASE = FORMS["short sentence"]
"""Words with the end of a sentence or the sign of a list."""
_TIME = re.compile(r"\b\d{1,2}:\d\d(:\d\d)?\b")
_SIGN = re.compile(r"^[^\w/]|[.!?:)]$")
_PROSE_WORDS = 3
# Words of tables that are no words of a sentence.
_TABLE_WORDS = frozenset({"none", "unknown", "range", "roundrobin", "sticky", "uniform", "true"})


def noise_rule(text: str) -> str | None:
    """Return the name of the rule that knows a line as noise, or None."""
    content = text.strip()
    return next((rule for rule, form in _NOISE_FORMS if form.fullmatch(content)), None)


def is_prose(text: str, names: frozenset[str], *, is_below: bool = False) -> bool:
    """Return whether a line is a sentence of its author, and no damaged row, message or value.

    A sentence has at least three words in lower case, or three words and nothing that looks like a
    cell, such as a number, a host, an id or a gap. Names of the input do not count. Below a table,
    three words without a sign can be the start of a row.
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
