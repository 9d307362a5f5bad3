"""Write metrics of consumer groups to a text file for Prometheus."""

from collections.abc import Iterable, Mapping

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
