"""Write metrics of consumer groups to a text file for Prometheus."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Gauge(NamedTuple):
    """Name and description of a gauge of Prometheus with one value per group."""

    name: str
    description: str


_SURVEY = {
    "gap": "Current maximum load above the planned maximum load, relative to the plan.",
    "maximum_load": "Current maximum load.",
    "planned_maximum_load": "Maximum load after the plan.",
    "maximum_load_bound": "Lower bound on the maximum load.",
    "spread": "Current maximum load minus current minimum load.",
    "planned_spread": "Spread after the plan.",
    "idle": "Members without load.",
    "planned_idle": "Idle members after the plan.",
    "hot": "Members with a load above the planned maximum load.",
    "moves": "Moves of the plan.",
    "unnecessary_moves": "Unnecessary moves in the given history.",
    "members": "Members of the group.",
    "partitions": "Consumed partitions.",
    "failed": "1 if the survey has no result for the group, else 0.",
}
_SURVEY_NAMES = {
    "gap": "gap_ratio",
    "idle": "idle_members",
    "planned_idle": "planned_idle_members",
    "hot": "hot_members",
}
SURVEY_METRICS = {
    column: Gauge(f"kassay_survey_{_SURVEY_NAMES.get(column, column)}", description)
    for column, description in _SURVEY.items()
}
"""Metrics of a survey, by column name in the rows of `metrics_text`."""


def metrics_text(
    rows: Iterable[Mapping[str, object]], metrics: Mapping[str, Gauge] = SURVEY_METRICS
) -> str:
    r"""Format rows of metric values, one row per group, in the text format of Prometheus.

    The columns are ``group`` and the keys of ``metrics``. Unknown values have no line.

    Examples
    --------
    >>> gauges = {"moves": SURVEY_METRICS["moves"]}
    >>> print(metrics_text([{"group": 'a "b"', "moves": 7}], gauges))
    # HELP kassay_survey_moves Moves of the plan.
    # TYPE kassay_survey_moves gauge
    kassay_survey_moves{group="a \"b\""} 7
    <BLANKLINE>
    """
    listed = sorted(rows, key=lambda row: str(row["group"]))
    lines = []
    for column, metric in metrics.items():
        lines.append(f"# HELP {metric.name} {metric.description}")
        lines.append(f"# TYPE {metric.name} gauge")
        for row in listed:
            value = row.get(column)
            if value is not None:
                lines.append(f'{metric.name}{{group="{_escaped(str(row["group"]))}"}} {value}')
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
