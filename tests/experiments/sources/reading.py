"""Read one text completely, as tests of single formats need."""

from kassay.experiments.sources.capture_contents import DocumentRows, merge_rows
from kassay.experiments.sources.line_account import ReadCapture
from kassay.experiments.sources.read_capture import read_capture


def parse_text(text: str, *, name: str) -> ReadCapture:
    """Return the content of a text. Raise the first problem of its account."""
    found = read_capture(text, name=name)
    for problem in found.account.problems:
        raise found.account.error(problem)
    return found


def content_of(text: str, *, name: str) -> DocumentRows:
    return merge_rows(parse_text(text, name=name).contents, name)
