"""Tables of report pages, and the text of numbers, intervals and p-values in their cells."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """Table of a report page. ``name`` is the name of the table's CSV file."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    csv: str

    @classmethod
    def of(
        cls,
        name: str,
        columns: Iterable[str],
        rows: Iterable[tuple[Any, ...]],
        *,
        data: pd.DataFrame | Sequence[Mapping[str, object]] | None = None,
    ) -> "ReportTable":
        """Create a table. Its CSV file contains ``data``, or else the table's cells."""
        titles, cells = tuple(columns), tuple(rows)
        frame = pd.DataFrame(cells, columns=titles) if data is None else pd.DataFrame(data)
        return cls(name=name, columns=titles, rows=cells, csv=frame.to_csv(index=False))


def number_text(value: float, sign: str = "") -> str:
    """Format a number with three significant digits, and at least as many integer digits."""
    size = abs(value)
    if not size or math.isnan(value):
        return "–" if size else "0"
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    text = f"{value:{sign}.{digits}f}" if size >= 0.001 else f"{value:{sign}.1g}"
    return text.replace("-", "−")


def interval_text(value: float, low: float, high: float, sign: str = "") -> str:
    """Format a value and the ends of its interval, if they differ."""
    if low == high:  # the resampled streams all have this value
        return number_text(value, sign)
    return f"{number_text(value, sign)} ({number_text(low, sign)} to {number_text(high, sign)})"


def p_text(p_value: float) -> str:
    """Format a p-value."""
    if math.isnan(p_value):
        return "–"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def short_number(value: float | None) -> str:
    """Format a number with three significant digits or as an integer, without trailing zeros.

    Examples
    --------
    >>> short_number(0.05), short_number(1234.5), short_number(None)
    ('0.05', '1234', '–')
    """
    if value is None:
        return "–"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
