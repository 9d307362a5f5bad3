"""Table of the results of event streams under other assumptions about their mix."""

from collections.abc import Mapping, Sequence

import pandas as pd

from kassay.experiments.report.report_table import ReportTable, number_text
from kassay.experiments.study.evaluate_event_stream import OPTIMUM
from kassay.experiments.study.statistics.event_stream_rates import RATES

_MEASURES = {
    "excess of the fullest member": "excess of the fullest member, %",
    "fullest member above the minimum": "fullest member above the minimum, %",
    "sum of squares above the minimum": "sum of squares above the minimum, %",
    "unnecessary moves": "unnecessary moves",
}
_LARGE = 32  # members at the start of a stream
_LATE = 4  # period of ten rebalances after which a stream is old


def sensitivity_table(
    streams: pd.DataFrame, events: pd.DataFrame, compared: Sequence[str]
) -> ReportTable:
    """Create the table of results under other assumptions, one row per assumption.

    ``streams`` are the sums per stream, ``events`` those per kind of event and per period of ten
    rebalances.
    """
    kind, period = events["event"].astype(str), events["period"]
    is_restart, is_scaling = kind.str.startswith("restart"), kind.str.startswith("scale")
    mixed, large = streams["mixed"].astype(bool), streams["start_members"] >= _LARGE
    parts = {
        "as in the study": streams,
        "all subscriptions equal": streams[~mixed],
        "all subscriptions mixed": streams[mixed],
        f"fewer than {_LARGE} members at the start": streams[~large],
        f"{_LARGE} members or more at the start": streams[large],
        "no rolling restarts": events[~is_restart],
        "no scaling": events[~is_scaling],
        "only the first ten rebalances": events[period == 0],
        f"only later than the first {10 * _LATE} rebalances": events[period >= _LATE],
    }
    sums = {name: part.groupby("assignor").sum(numeric_only=True) for name, part in parts.items()}
    values = {name: _ratios(part, compared) for name, part in sums.items() if OPTIMUM in part.index}
    counts = {name: int(sums[name]["rebalances"][OPTIMUM]) for name in values}
    equal = "every stream with the same weight"
    values[equal] = _stream_means(streams, compared)
    counts[equal] = counts["as in the study"]
    columns = ("assumption", "assignor", "rebalances", *_MEASURES.values())
    rows = tuple(
        (
            name,
            assignor,
            str(counts[name]),
            *(number_text(found[measure, assignor]) for measure in _MEASURES),
        )
        for name, found in values.items()
        for assignor in compared
    )
    return ReportTable.of("sensitivity", columns, rows)


def _ratios(sums: pd.DataFrame, compared: Sequence[str]) -> Mapping[tuple[str, str], float]:
    by_assignor = sums.T
    return {
        (measure, name): RATES[measure].of(by_assignor[name])
        for measure in _MEASURES
        for name in compared
    }


def _stream_means(
    streams: pd.DataFrame, compared: Sequence[str]
) -> Mapping[tuple[str, str], float]:
    """Average the rates of the streams, so that long streams count like short ones."""
    sums = streams.groupby(["assignor", "seed"]).sum(numeric_only=True).astype(float)
    found = {}
    for measure in _MEASURES:
        rate = RATES[measure]
        for name in compared:
            own = sums.loc[name]
            known = own[own[rate.per] > 0]
            found[measure, name] = float(
                (rate.factor * known[rate.column] / known[rate.per]).mean()
            )
    return found
