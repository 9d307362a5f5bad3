"""Write metrics of consumer groups to a text file for Prometheus."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple


class Metric(NamedTuple):
    """Name, type and description of a Prometheus metric with one value per group."""

    name: str
    type: str
    description: str


METRICS = {
    "rebalances": Metric("kassay_rebalances_total", "counter", "Rebalances."),
    "moves": Metric(
        "kassay_moves_total", "counter", "Moves of partitions with a known previous owner."
    ),
    "unnecessary_moves": Metric(
        "kassay_unnecessary_moves_total",
        "counter",
        "Moves that some assignment of equal or better imbalance does without.",
    ),
    "unproven": Metric(
        "kassay_unproven_rebalances_total",
        "counter",
        "Rebalances with an unknown number of unnecessary moves.",
    ),
    "seconds_without_owner": Metric(
        "kassay_seconds_without_owner_total",
        "counter",
        "Time from the first to the last generation of rebalances with several generations, in "
        "which some partitions have no owner.",
    ),
    "imbalance_gap": Metric(
        "kassay_imbalance_gap",
        "gauge",
        "Sum of squared loads minus its optimum, after the last rebalance.",
    ),
    "makespan_gap": Metric(
        "kassay_maximum_load_gap",
        "gauge",
        "Maximum load minus its optimum, after the last rebalance.",
    ),
    "last_rebalance": Metric(
        "kassay_last_rebalance_timestamp_seconds", "gauge", "Time of the last rebalance."
    ),
}
"""Metrics of a followed cluster, by column name in the rows of `metrics_text`."""

SURVEY_METRICS = {
    "gap": Metric(
        "kassay_survey_gap_ratio",
        "gauge",
        "Current maximum load above the maximum load of an optimal plan, relative to the plan.",
    ),
    "maximum_load": Metric("kassay_survey_maximum_load", "gauge", "Current maximum load."),
    "planned_maximum_load": Metric(
        "kassay_survey_planned_maximum_load", "gauge", "Maximum load after an optimal plan."
    ),
    "maximum_load_bound": Metric(
        "kassay_survey_maximum_load_bound", "gauge", "Lower bound on the maximum load."
    ),
    "spread": Metric(
        "kassay_survey_spread", "gauge", "Current maximum load minus current minimum load."
    ),
    "planned_spread": Metric(
        "kassay_survey_planned_spread", "gauge", "Spread after an optimal plan."
    ),
    "idle": Metric("kassay_survey_idle_members", "gauge", "Members without load."),
    "planned_idle": Metric(
        "kassay_survey_planned_idle_members", "gauge", "Idle members after an optimal plan."
    ),
    "hot": Metric(
        "kassay_survey_hot_members", "gauge", "Members with a load above the planned maximum load."
    ),
    "moves": Metric("kassay_survey_moves", "gauge", "Moves of an optimal plan."),
    "unnecessary_moves": Metric(
        "kassay_survey_unnecessary_moves", "gauge", "Unnecessary moves in the given history."
    ),
    "members": Metric("kassay_survey_members", "gauge", "Members of the group."),
    "partitions": Metric("kassay_survey_partitions", "gauge", "Consumed partitions."),
    "failed": Metric(
        "kassay_survey_failed", "gauge", "1 if the survey has no result for the group, else 0."
    ),
}
"""Metrics of a survey, by column name in the rows of `metrics_text`."""


def metrics_text(
    rows: Iterable[Mapping[str, object]], metrics: Mapping[str, Metric] = METRICS
) -> str:
    r"""Format rows of metric values, one row per group, in the text format of Prometheus.

    The columns are ``group`` and the keys of ``metrics``. Unknown values have no line.

    Examples
    --------
    >>> print(metrics_text([{"group": 'a "b"', "rebalances": 7}]))  # doctest: +ELLIPSIS
    # HELP kassay_rebalances_total Rebalances.
    # TYPE kassay_rebalances_total counter
    kassay_rebalances_total{group="a \"b\""} 7
    ...
    """
    listed = sorted(rows, key=lambda row: str(row["group"]))
    lines = []
    for column, metric in metrics.items():
        lines.append(f"# HELP {metric.name} {metric.description}")
        lines.append(f"# TYPE {metric.name} {metric.type}")
        for row in listed:
            value = row.get(column)
            if value is not None:
                lines.append(f'{metric.name}{{group="{_escaped(str(row["group"]))}"}} {value}')
    return "\n".join(lines) + "\n"


def replace_file(path: Path, text: str) -> None:
    """Replace the content of a file atomically: a reader sees either the old or the new text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
