"""Render a survey as page, CSV text, and metrics for Prometheus."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

from kassay.experiments.planning.survey import Survey
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.output_files import write_csv

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


_GAUGES = {
    "gap": (
        "gap_ratio",
        "Current maximum load above the planned maximum load, relative to the plan.",
    ),
    "maximum_load": ("maximum_load", "Current maximum load."),
    "planned_maximum_load": ("planned_maximum_load", "Maximum load after the plan."),
    "maximum_load_bound": ("maximum_load_bound", "Lower bound on the maximum load."),
    "spread": ("spread", "Current maximum load minus current minimum load."),
    "planned_spread": ("planned_spread", "Spread after the plan."),
    "idle": ("idle_members", "Members without load."),
    "planned_idle": ("planned_idle_members", "Idle members after the plan."),
    "hot": ("hot_members", "Members with a load above the planned maximum load."),
    "moves": ("moves", "Moves of the plan."),
    "unnecessary_moves": ("unnecessary_moves", "Unnecessary moves in the given history."),
    "members": ("members", "Members of the group."),
    "partitions": ("partitions", "Consumed partitions."),
    "failed": ("failed", "1 if the survey has no result for the group, else 0."),
}
"""Name and description of a gauge, by column name in the rows of `metrics_text`."""


def metrics_text(rows: Iterable[Mapping[str, object]]) -> str:
    r"""Format metric values of a survey, one row per group, in the text format of Prometheus.

    The columns are ``group`` and the keys of `_GAUGES`. Unknown values have no line.

    Examples
    --------
    >>> text = metrics_text([{"group": 'a "b"', "moves": 7}])
    >>> print("\n".join(line for line in text.splitlines() if "survey_moves" in line))
    # HELP kassay_survey_moves Moves of the plan.
    # TYPE kassay_survey_moves gauge
    kassay_survey_moves{group="a \"b\""} 7
    """
    listed = sorted(rows, key=lambda row: str(row["group"]))
    lines = []
    for column, (gauge, description) in _GAUGES.items():
        name = f"kassay_survey_{gauge}"
        lines += [f"# HELP {name} {description}", f"# TYPE {name} gauge"]
        for row in listed:
            value = row.get(column)
            if value is not None:
                lines.append(f'{name}{{group="{_escaped(str(row["group"]))}"}} {value}')
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
