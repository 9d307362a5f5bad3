"""Render a survey as page and CSV text."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

from kassay.experiments.planning.survey import Survey
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.csv_writer import write_csv

_TEMPLATES = Path(__file__).parent / "templates"
_COLUMNS = (
    *("rank", "group", "state", "cause", "remarks", "gap", "gap limit", "maximum load"),
    *("planned maximum load", "bound", "spread", "planned spread", "idle", "planned idle"),
    *("hot", "moves", "placed", "unnecessary moves", "members", "partitions"),
)


def render_survey(survey: Survey, *, source: str, plans: Mapping[str | None, str]) -> str:
    """Render a survey as an HTML page. Equal surveys give equal bytes.

    ``source`` is the name of the source. ``plans`` maps the id of a group to the path of its plan
    page, relative to the page of the survey.
    """
    links = {id: quote(path) for id, path in plans.items()}
    template = environment(_TEMPLATES, autoescape=True).get_template("survey.html.j2")
    return template.render(
        survey=survey,
        totals=survey.totals(),
        source=source,
        links=links,
        has_history=any(group.history is not None for group in survey.groups),
        survey_csv=_csv(survey),
    )


def survey_text(survey: Survey) -> str:
    """Write the causes and remarks of a survey, and its totals, as text."""
    template = environment(_TEMPLATES, autoescape=False).get_template("survey.txt.j2")
    return template.render(survey=survey)


def _csv(survey: Survey) -> str:
    rows = (
        (
            rank,
            group.id or "",
            group.state or "",
            group.cause or "",
            group.remarks,
            *(f"{float(one):.4f}" if isinstance(one, Fraction) else one for one in values),
        )
        for rank, group in enumerate(survey.groups, 1)
        for values in [group.values().values()]
    )
    return write_csv(_COLUMNS, rows)
