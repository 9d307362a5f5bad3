"""Create the Jinja environment of all HTML and Markdown pages."""

import base64
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from unicodedata import combining, east_asian_width

import jinja2
from markupsafe import Markup

from kassay.reference.documents.files import formulas_as_text, read_data_file
from kassay.reference.model.display import count_of

BLUE, ORANGE = "#0b66a8", "#c2521b"
"""Colours of HTML pages and of the figures on the pages."""
NUMBER = "{:,}".format
"""Format of all numbers of pages: commas between groups of three digits."""
_VARIABLES = dict(read_data_file(__package__, "colours.txt"))
"""Names of CSS variables by their colours on a light page."""
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>#|!]")
_NUMERIC = re.compile(r"[+−-]?[\d,.]+([\s%–]|$)")  # not 127.0.0.1:8083, or 0f-1
_VISIBLE = dict.fromkeys(
    [*range(9), *range(14, 32), *range(127, 160), *range(8234, 8239), *range(8294, 8298)], "\ufffd"
)
"""Replacements of control characters and of those that change the direction of a text."""
_TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment(*folders: Path, autoescape: bool) -> jinja2.Environment:
    """Create a Jinja environment with the shared templates and the templates in ``folders``.

    The environment is cached, because compiling templates takes longer than rendering most pages.
    """
    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, _TEMPLATES]),
        autoescape=autoescape,  # noqa: S701 - off for Markdown only
        undefined=jinja2.StrictUndefined,
        finalize=lambda x: x.translate(_VISIBLE) if autoescape and isinstance(x, str) else x,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters.update(
        csv_link=_csv_link,
        number=NUMBER,
        counted=count_of,
        command=Markup('<code class="command">kassay report DIR --only {}</code>').format,
        md=escape_markdown,
        code=markdown_code,
        themed=_themed,
        width=text_width,
        word_columns=_word_columns,
    )
    sheets = [sheet for folder in (_TEMPLATES, *folders) for sheet in sorted(folder.glob("*.css"))]
    style = Markup("".join(sheet.read_text("utf-8") for sheet in sheets))  # noqa: S704 - own file
    script = Markup((_TEMPLATES / "page.js").read_text("utf-8"))  # noqa: S704 - own file
    jinja.globals.update(style=style, script=script, blue=_themed(BLUE), orange=_themed(ORANGE))
    return jinja


def _themed(text: str) -> str:
    """Replace colours by CSS variables, so that dark pages can use other colours."""
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    return text


def _word_columns(rows: Sequence[Sequence[object]]) -> set[int]:
    """Return the columns that contain words, which are aligned to the left."""
    cells = [(column, str(cell)) for row in rows for column, cell in enumerate(row)]
    numbers = {column for column, text in cells if _NUMERIC.match(text)}
    return {column for column, text in cells if text[:1].isalnum()} - numbers


def _csv_link(csv: str, name: str) -> Markup:
    data = base64.b64encode(formulas_as_text(csv).encode()).decode()
    return Markup(
        '<a class="data" download="{}.csv" href="data:text/csv;base64,{}">CSV</a>'
    ).format(name, data)


def text_width(text: str) -> int:
    """Estimate the maximum width of a text in a drawing, in pixels."""
    return sum(
        18 if east_asian_width(c) in "WF" else 14 if c in "MWmw@%…" else 11 if c.isupper() else 8
        for c in text
        if not combining(c)
    )


def escape_markdown(text: str) -> str:
    r"""Escape the characters that have a meaning in Markdown or HTML."""
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(text.split()))


def markdown_code(text: str) -> str:
    """Format a name as inline code in Markdown, even if it contains backticks."""
    text = " ".join(text.split())
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", r"\|")
