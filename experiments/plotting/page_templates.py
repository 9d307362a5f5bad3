"""What renders every page: Jinja, our style, script and colours, and the filters pages share."""

import base64
from pathlib import Path

import jinja2
from markupsafe import Markup

from kassay.experiments.plotting import svg_figures as figures

_TEMPLATES = Path(__file__).parent / "templates"


def environment(*folders: Path, autoescape: bool) -> jinja2.Environment:
    """Return what renders the templates of the report and of further folders.

    Parameters
    ----------
    folders
        Where a page has templates of its own; style sheets there follow the report's.
    autoescape
        Whether the output is HTML.
    """
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, _TEMPLATES]),
        autoescape=autoescape,  # noqa: S701 - off for Markdown only
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["csv_link"] = _csv_link
    made.filters["number"] = _number
    made.filters["remade"] = _remade
    sheets = [sheet for folder in (_TEMPLATES, *folders) for sheet in sorted(folder.glob("*.css"))]
    made.globals["equal_colour"] = figures.EQUAL
    made.globals["mixed_colour"] = figures.MIXED
    made.globals["style"] = _own("".join(sheet.read_text(encoding="utf-8") for sheet in sheets))
    made.globals["script"] = _own((_TEMPLATES / "page.js").read_text(encoding="utf-8"))
    return made


def _own(text: str) -> Markup:
    """Trust a file of ours."""
    return Markup(text)  # noqa: S704


def _csv_link(csv: str, name: str) -> Markup:
    """Return a link that downloads the data, which it carries."""
    data = base64.b64encode(csv.encode()).decode()
    return Markup(
        '<a class="data" download="{}.csv" href="data:text/csv;base64,{}">CSV</a>'
    ).format(name, data)


def _remade(name: str) -> Markup:
    """Return the command that makes one figure or table again."""
    return Markup('<code class="remake">kassay report DIR --only {}</code>').format(name)


def _number(value: int) -> str:
    """Group the digits of large numbers with narrow no-break spaces."""
    return f"{value:,}".replace(",", "\u202f")
