"""Write metrics of consumer groups to a text file for Prometheus."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Metric(NamedTuple):
    """Name, type and description of a Prometheus metric with one value per group."""

    name: str
    type: str
    description: str


def _counter(name: str, description: str) -> Metric:
    return Metric(f"kassay_{name}_total", "counter", description)


def _gauge(name: str, description: str) -> Metric:
    return Metric(f"kassay_{name}", "gauge", description)


METRICS = {
    "rebalances": _counter("rebalances", "Rebalances."),
    "moves": _counter("moves", "Moves of partitions with a known previous owner."),
    "unnecessary_moves": _counter(
        "unnecessary_moves", "Moves that some assignment of equal or better imbalance does without."
    ),
    "unproven": _counter(
        "unproven_rebalances", "Rebalances with an unknown number of unnecessary moves."
    ),
    "seconds_without_owner": _counter(
        "seconds_without_owner",
        "Time from the first to the last generation of rebalances with several generations, in "
        "which some partitions have no owner.",
    ),
    "imbalance_gap": _gauge(
        "imbalance_gap", "Sum of squared loads minus its optimum, after the last rebalance."
    ),
    "makespan_gap": _gauge(
        "maximum_load_gap", "Maximum load minus its optimum, after the last rebalance."
    ),
    "last_rebalance": _gauge("last_rebalance_timestamp_seconds", "Time of the last rebalance."),
}
"""Metrics of a followed cluster, by column name in the rows of `metrics_text`."""

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
    column: _gauge(f"survey_{_SURVEY_NAMES.get(column, column)}", description)
    for column, description in _SURVEY.items()
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


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
