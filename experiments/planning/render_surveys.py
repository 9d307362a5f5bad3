"""Render surveys as pages, text, CSV and metrics."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from kassay.experiments.planning.survey import Survey
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.files import write_csv

_TEMPLATES = Path(__file__).parent / "templates"
_LINE = 2000


def render_survey(
    survey: Survey, *, source: str, plans: Mapping[str | None, str], state: str = ""
) -> str:
    """Render a survey as an HTML page.

    ``source`` is the name of the source. ``plans`` maps the id of a group to the path of its plan
    page, relative to the page of the survey. ``state`` is a sentence on the age of the survey.
    """
    links = {id: quote(path) for id, path in plans.items()}
    template = environment(_TEMPLATES, autoescape=True).get_template("survey.html.j2")
    return template.render(
        survey=survey,
        totals=survey.totals(),
        source=source,
        state=state,
        links=links,
        has_history=any(group.history is not None for group in survey.groups),
        survey_csv=_csv(survey),
    )


def survey_text(survey: Survey, source: str) -> str:
    """Format the causes, remarks and totals of a survey as text."""
    templates = environment(_TEMPLATES, autoescape=False)
    templates.filters.update(line=line, quoted=shlex.quote)
    return templates.get_template("survey.txt.j2").render(survey=survey, source=source)


def line(text: str) -> str:
    """Convert a text to one line of at most 2,000 characters."""
    cut = text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in cut)


def _csv(survey: Survey) -> str:
    rows: list[dict[str, object]] = [
        {
            "rank": rank,
            "group": group.id or "",
            "state": group.state or "",
            "cause": "" if group.cause is None else group.cause,
            "remarks": group.remarks,
            **group.values(),
            "gap": float(group.gap),
            "gap_limit": float(group.gap_limit),
        }
        for rank, group in enumerate(survey.groups, 1)
    ]
    return write_csv(tuple(rows[0]) if rows else (), [list(row.values()) for row in rows])


def metrics_text(
    rows: Iterable[Mapping[str, object]], *, watched: Mapping[str, object] | None = None
) -> str:
    r"""Format the values of groups in the text format of Prometheus.

    The columns are ``group`` and those in survey_metrics.txt.j2. Unknown values have no line.
    ``watched`` has the state and the totals of `kassay watch`.
    """
    template = environment(_TEMPLATES, autoescape=False).get_template("survey_metrics.txt.j2")
    return template.render(rows=sorted(rows, key=lambda row: str(row["group"])), watched=watched)
