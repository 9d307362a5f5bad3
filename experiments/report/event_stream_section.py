"""Create the section on event streams of a study report, with confidence intervals."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kassay.experiments.report import study_tables
from kassay.experiments.study import schemas
from kassay.experiments.study.families.all_families import FAMILIES
from kassay.experiments.study.families.event_streams import EventStreamFamily
from kassay.experiments.study.output_reader import StudySummary
from kassay.reference.model.errors import InternalError

_SIZES = ((2, 7), (8, 15), (16, 31), (32, 99), (100, 1000))  # members at the start of a stream
_ALL_SIZES = (2, 1000)
_KINDS = ("equal", "mixed")
_BALANCE = (
    "fullest member above the minimum",
    "sum of squares above the minimum",
    "excess of the fullest member",
)
_MOVES = (
    *("moves", "unnecessary moves", "unnecessary moves per owned partition"),
    *("with unnecessary moves", "moves above the fewest at each rebalance"),
)
PRIMARY_ENDPOINT = "unnecessary moves"
_PAIRED = (PRIMARY_ENDPOINT, "moves", "fullest member above the minimum")
_BY_STRATUM = (_BALANCE[0], "moves", "unnecessary moves", "moves above hindsight")
_BY_POSITION = ("owned", "unnecessary moves", "unnecessary moves per owned partition")
_FEWEST = "fewest moves at each rebalance"
_STREAM_RESAMPLES = 2000
OPTIMAL_MOVES = "optimal_moves"
"""Column with the moves of the optimum at each rebalance of the same streams."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Rate in a report on event streams: ratio of the sums of two columns, times a factor.

    The numerator is the sum of a column minus the sum of another column, if there is one.
    """

    column: str
    per: str
    factor: float = 1.0
    minus: str | None = None

    def parts(self, sums: pd.DataFrame) -> tuple["pd.Series[float]", "pd.Series[float]"]:
        """Return numerators and denominators of the rate, one per row of sums."""
        above = sums[self.column].astype(float)
        if self.minus is not None:
            above = above - sums[self.minus].astype(float)
        return above, sums[self.per].astype(float)

    def of(self, sums: pd.DataFrame) -> "pd.Series[float]":
        """Return the rate for each row of sums, or NaN if the denominator is 0."""
        above, below = self.parts(sums)
        return self.factor * above / below.where(below > 0)


ABOVE_HINDSIGHT = "moves above hindsight, relative"
"""Name of the rate of moves above hindsight, in per cent of the hindsight moves."""

RATES: Mapping[str, Rate] = {
    "fullest member above the minimum": Rate("above_least_makespan", "rebalances", 100),
    "sum of squares above the minimum": Rate("above_least_squares", "rebalances", 100),
    "excess of the fullest member": Rate("excess", "least_makespan", 100),
    "owned": Rate("owned", "rebalances"),
    "moves": Rate("moves", "rebalances"),
    "unnecessary moves": Rate("unnecessary_moves", "known"),
    "unnecessary moves per owned partition": Rate("unnecessary_moves", "known_owned", 100),
    "with unnecessary moves": Rate("with_unnecessary_moves", "known", 100),
    "moves above the fewest at each rebalance": Rate("moves", "rebalances", minus=OPTIMAL_MOVES),
    "moves above hindsight": Rate("above_hindsight", "with_hindsight"),
    ABOVE_HINDSIGHT: Rate("above_hindsight", "hindsight_moves", 100),
}
"""Rates of the report by name, in per cent or per rebalance."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Value of a rate or of a difference of rates, with a 95% interval."""

    value: float
    low: float
    high: float


class StreamPair(NamedTuple):
    """Comparison of one rate of two assignors on the same event streams."""

    lower: int  # streams in which the second assignor has the lower value
    equal: int
    higher: int
    difference: Estimate | None  # None if an assignor has no result


class StreamTotals:
    """Sums of columns per event stream and assignor, with bootstrap weights of the streams."""

    def __init__(self, rows: pd.DataFrame, *, seed: int = 0) -> None:
        keys = ["family", "seed", "assignor"]
        sums = rows.drop(columns=["mixed", "start_members"]).groupby(keys, sort=True).sum()
        self._streams = sums.index.droplevel("assignor").unique()
        self._columns = {
            str(name): part.droplevel("assignor").reindex(self._streams, fill_value=0)
            for name, part in sums.groupby("assignor")
        }
        if schemas.OPTIMUM in self._columns:
            optimal = self._columns[schemas.OPTIMUM]["moves"]
            for part in self._columns.values():
                part[OPTIMAL_MOVES] = optimal
        count = len(self._streams)
        shares = np.full(count, 1 / max(count, 1))
        self._weights = np.zeros((_STREAM_RESAMPLES, count))
        if count:
            self._weights += np.random.default_rng(seed).multinomial(
                count, shares, _STREAM_RESAMPLES
            )

    @property
    def streams(self) -> int:
        """Return the number of event streams."""
        return len(self._streams)

    def total(self, assignor: str, column: str) -> int:
        """Return the sum of a column over all event streams."""
        return int(self._columns[assignor][column].sum())

    def estimate(self, assignor: str, rate: Rate) -> Estimate | None:
        """Estimate a rate of an assignor, or return None if the denominator is 0."""
        above, below = self._parts(assignor, rate)
        if not below.sum():
            return None
        return _estimate(
            rate.factor * above.sum() / below.sum(), self._resampled(rate, above, below)
        )

    def compare(self, before: str, after: str, rate: Rate) -> StreamPair:
        """Compare two assignors by a rate on the same event streams."""
        parts = [self._parts(assignor, rate) for assignor in (before, after)]
        (above, below), (above_after, below_after) = parts
        if not below.sum() * below_after.sum():
            return StreamPair(0, 0, 0, None)
        # Products instead of quotients: a stream can have the denominator 0.
        sign = np.sign(above_after * below - above * below_after)
        value = above_after.sum() / below_after.sum() - above.sum() / below.sum()
        one, two = (self._resampled(rate, *part) for part in parts)
        lower, equal, higher = (int((sign == side).sum()) for side in (-1, 0, 1))
        return StreamPair(lower, equal, higher, _estimate(rate.factor * value, two - one))

    def _parts(self, assignor: str, rate: Rate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        above, below = rate.parts(self._columns[assignor])
        return np.asarray(above, np.float64), np.asarray(below, np.float64)

    def _resampled(
        self, rate: Rate, above: NDArray[np.float64], below: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        divisor = self._weights @ below
        ratios = np.full(len(divisor), np.nan)
        np.divide(rate.factor * (self._weights @ above), divisor, out=ratios, where=divisor > 0)
        return ratios


def _estimate(value: float, resampled: NDArray[np.float64]) -> Estimate:
    low, high = np.nanquantile(
        resampled, [1 - study_tables.UPPER_QUANTILE, study_tables.UPPER_QUANTILE]
    )
    return Estimate(float(value), float(low), float(high))


def trajectory_sections(results: StudySummary) -> tuple[Mapping[str, object], ...]:
    """Create the tables of the event streams of a study, one section per family."""
    both = results.trajectories, results.events
    return tuple(
        _section(family, *(table[table["family"] == family] for table in both))
        for family in sorted(set(results.trajectories["family"]))
    )


def _section(family: str, rows: pd.DataFrame, events: pd.DataFrame) -> Mapping[str, object]:
    streams, totals = FAMILIES[family], StreamTotals(rows)
    if not isinstance(streams, EventStreamFamily):
        raise InternalError(f"internal error: {family} has no event streams; report a bug")
    names = tuple(
        name
        for name in schemas.assignors_of(rows["assignor"])
        if name not in (schemas.OPTIMUM, schemas.HINDSIGHT)
    )
    compared = schemas.compared_assignors(names)
    mixed = rows[rows["mixed"]]
    primary_rates = () if mixed.empty else (PRIMARY_ENDPOINT,)
    shown = {
        "balance": _rate_table("balance", totals, names, _BALANCE),
        "moves": _rate_table("moves", totals, (*names, schemas.OPTIMUM), _MOVES),
        "hindsight": _hindsight_table(streams, rows, (schemas.OPTIMUM, *compared)),
        "primary": _pair_table("primary-endpoint", StreamTotals(mixed), compared, primary_rates),
        "pairs": _pair_table("pairs", totals, compared, _PAIRED),
        "strata": _strata_table(rows, (*compared, schemas.OPTIMUM)),
        "events": _sums_table("events", events, "event", (*compared, schemas.OPTIMUM), _BY_STRATUM),
        "positions": _sums_table("positions", events, "period", compared, _BY_POSITION),
        "sensitivity": sensitivity_table(rows, events, compared),
    }
    return {
        "family": family,
        "findings": tuple(_findings(totals, compared)),
        "streams": totals.streams,
        "hindsight_size": streams.hindsight_size,
        "hindsight_seeds": streams.hindsight_seeds,
        "primary_endpoint": PRIMARY_ENDPOINT,
        "rebalances": totals.total(schemas.OPTIMUM, "rebalances"),
        "judged": sum(totals.total(name, "rebalances") for name in names),
        "unknown": sum(
            totals.total(name, "rebalances")
            - totals.total(name, "failed")
            - totals.total(name, "known")
            for name in names
        ),
        **{key: replace(table, name=f"{family}-{table.name}") for key, table in shown.items()},
    }


def _findings(totals: StreamTotals, compared: Sequence[str]) -> Iterator[str]:
    for name in filter(schemas.is_own, compared):
        if failed := totals.total(name, "failed"):
            yield f"{name} fails on {failed} of {totals.total(name, 'rebalances')} rebalances."
    for name in compared:
        rates = (PRIMARY_ENDPOINT, _BALANCE[0])
        moves, above = (_text(totals.estimate(name, RATES[rate])) for rate in rates)
        yield (
            f"{name} makes {moves} unnecessary moves per rebalance. The maximum load is above its "
            f"minimum after {above} % of the rebalances."
        )


def _rate_table(
    name: str, totals: StreamTotals, assignors: Sequence[str], rates: Sequence[str]
) -> study_tables.ReportTable:
    columns = ("assignor", "rebalances", "fails", *(_with_unit(rate) for rate in rates))
    rows, data = [], []
    for assignor in assignors:
        counts = [totals.total(assignor, column) for column in ("rebalances", "failed")]
        found = [totals.estimate(assignor, RATES[rate]) for rate in rates]
        rows.append((_label(assignor), *map(str, counts), *map(_text, found)))
        data.append(
            {"assignor": assignor, "rebalances": counts[0], "failed": counts[1]}
            | {
                f"{rate} {part}".removesuffix(" value"): getattr(estimate, part, None)
                for rate, estimate in zip(rates, found, strict=True)
                for part in ("value", "low", "high")
            }
        )
    return study_tables.ReportTable.of(name, columns, rows, data=data)


def _hindsight_table(
    streams: EventStreamFamily, rows: pd.DataFrame, names: Sequence[str]
) -> study_tables.ReportTable:
    """Create the table of moves above the hindsight optimum, by subscriptions and group size.

    A stream has mixed subscriptions if it has them at one or more rebalances.
    """
    proven = set(rows.loc[rows["assignor"] == schemas.HINDSIGHT, "seed"])
    found = rows.groupby("seed")[["mixed", "start_members"]].max()
    found = found[[streams.has_hindsight(seed) for seed in found.index]]
    table = []
    for kind, (low, high) in itertools.product(_KINDS, (*_SIZES, _ALL_SIZES)):
        is_in = (found["mixed"] == (kind == "mixed")) & found["start_members"].between(low, high)
        seeds = [seed for seed in found.index[is_in] if seed in proven]
        if seeds:
            totals = StreamTotals(rows[rows["seed"].isin(seeds)])
            size = "all" if (low, high) == _ALL_SIZES else f"{low}–{high} members"
            above = [_text(totals.estimate(name, RATES[ABOVE_HINDSIGHT])) for name in names]
            moves = str(totals.total(schemas.OPTIMUM, "hindsight_moves"))
            table.append((f"{kind}, {size}", f"{len(seeds)} of {is_in.sum()}", moves, *above))
    columns = ("streams", "proven", "moves with hindsight", *map(_label, names))
    return study_tables.ReportTable.of("hindsight", columns, table)


def _pair_table(
    name: str, totals: StreamTotals, compared: Sequence[str], rates: Sequence[str]
) -> study_tables.ReportTable:
    rows = []
    for rate in rates:
        for before, after in itertools.combinations(compared, 2):
            *counts, difference = totals.compare(before, after, RATES[rate])
            names = (f"{before} → {after}", _with_unit(rate))
            rows.append((*names, *map(str, (totals.streams, *counts)), _text(difference, "+")))
    columns = ("from → to", "measure", "streams", "lower", "equal", "higher", "difference (95%)")
    return study_tables.ReportTable.of(name, columns, rows)


def _strata_table(streams: pd.DataFrame, assignors: Sequence[str]) -> study_tables.ReportTable:
    members = streams["start_members"]
    strata = {f"{low}–{high} members": members.between(low, high) for low, high in _SIZES}
    strata |= {f"{name} subscriptions": streams["mixed"] == (name == "mixed") for name in _KINDS}
    columns = ("stratum", "assignor", "streams", "rebalances", *map(_with_unit, _BY_STRATUM))
    rows = []
    for label, is_in in strata.items():
        if is_in.any():
            totals = StreamTotals(streams[is_in])
            counts = (str(totals.streams), str(totals.total(schemas.OPTIMUM, "rebalances")))
            for name in assignors:
                found = [totals.estimate(name, RATES[rate]) for rate in _BY_STRATUM]
                rows.append((label, _label(name), *counts, *map(_text, found)))
    return study_tables.ReportTable.of("strata", columns, rows)


def _sums_table(
    name: str, rows: pd.DataFrame, key: str, assignors: Sequence[str], rates: Sequence[str]
) -> study_tables.ReportTable:
    sums = rows.groupby([key, "assignor"]).sum(numeric_only=True)
    found = _rates(sums, rates)
    title = {"period": "rebalances of the stream"}.get(key, key)
    table = []
    for value in sorted(rows[key].unique()):
        label = value if key == "event" else f"{10 * int(value) + 1}–{10 * int(value) + 10}"
        count = str(sums.loc[value, schemas.OPTIMUM]["rebalances"])
        for assignor in assignors:
            cells = map(study_tables.number_text, found.loc[(value, assignor)])
            table.append((str(label), _label(assignor), count, *cells))
    columns = (title, "assignor", "rebalances", *map(_with_unit, rates))
    return study_tables.ReportTable.of(name, columns, table)


def _rates(sums: pd.DataFrame, rates: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame({rate: RATES[rate].of(sums) for rate in rates})


def _label(assignor: str) -> str:
    return _FEWEST if assignor == schemas.OPTIMUM else assignor


def _with_unit(rate: str) -> str:
    return f"{rate}, %" if RATES[rate].factor == 100 else rate


def _text(estimate: Estimate | None, sign: str = "") -> str:
    if estimate is None:
        return "–"
    return study_tables.interval_text(estimate.value, estimate.low, estimate.high, sign)


_MEASURES = (_BALANCE[2], *_BALANCE[:2], "unnecessary moves")
_LARGE = 32  # members at the start of a stream
_LATE = 4  # period of ten rebalances after which a stream is old


def sensitivity_table(
    streams: pd.DataFrame, events: pd.DataFrame, compared: Sequence[str]
) -> study_tables.ReportTable:
    """Create the table of results under other assumptions about event streams.

    ``streams`` has the sums per stream, ``events`` the sums per kind of event and per period of
    ten rebalances.
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
    values = {
        name: _rates(part, _MEASURES)
        for name, part in sums.items()
        if schemas.OPTIMUM in part.index
    }
    counts = {name: int(sums[name]["rebalances"][schemas.OPTIMUM]) for name in values}
    equal = "every stream with the same weight"
    per_stream = streams.groupby(["assignor", "seed"]).sum(numeric_only=True)
    # A mean of rates: long streams count like short ones.
    values[equal] = _rates(per_stream, _MEASURES).groupby("assignor").mean()
    counts[equal] = counts["as in the study"]
    columns = ("assumption", "assignor", "rebalances", *map(_with_unit, _MEASURES))
    rows = tuple(
        (name, assignor, str(counts[name]), *map(study_tables.number_text, found.loc[assignor]))
        for name, found in values.items()
        for assignor in compared
    )
    return study_tables.ReportTable.of("sensitivity", columns, rows)
