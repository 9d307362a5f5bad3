"""Timing a call, and the table that all benchmarks print."""

import gc
import json
import multiprocessing
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import TextIO, TypeVar, TypeVarTuple

from rich.console import Console
from rich.table import Table

_Given = TypeVarTuple("_Given")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long one contestant took on one case.

    Parameters
    ----------
    benchmark
        Name of the comparison.
    case
        What was assigned, in words.
    contestant
        Who assigned it.
    seconds
        Best of the repetitions; None where it did not finish within its limit.
    ratio
        Our own seconds divided by these, or None where either is missing: above 1 they
        are faster than we are, below 1 slower.
    note
        What the number alone does not say.
    """

    benchmark: str
    case: str
    contestant: str
    seconds: float | None
    ratio: float | None = None
    note: str = ""


def alone(call: Callable[[*_Given], _Result], *given: *_Given) -> _Result:
    """Call in a new process, which has nobody else's memory, threads or Java.

    Examples
    --------
    >>> alone(abs, -3)
    3
    """
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as process:
        return process.submit(call, *given).result()


def best_seconds(
    call: Callable[[], object], *, repetitions: int = 5, budget: float = 20.0
) -> float:
    """Shortest wall-clock time of a call, with the garbage collector held off.

    Parameters
    ----------
    call
        What to time.
    repetitions
        Most calls to make.
    budget
        Seconds after which no further call is started; one is always made.

    Examples
    --------
    >>> best_seconds(lambda: None, repetitions=2) >= 0
    True
    """
    best = float("inf")
    deadline = time.perf_counter() + budget
    for _ in range(repetitions):
        gc.collect()
        gc.disable()
        try:
            start = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - start)
        finally:
            gc.enable()
        if time.perf_counter() > deadline:
            break
    return best


def with_ratios(timings: Iterable[Timing], *, ours: str) -> list[Timing]:
    """Fill in each contestant's ratio to our own time on the same case.

    Examples
    --------
    >>> rows = [
    ...     Timing(benchmark="b", case="c", contestant="kassay", seconds=2.0),
    ...     Timing(benchmark="b", case="c", contestant="Java", seconds=0.5),
    ... ]
    >>> [row.ratio for row in with_ratios(rows, ours="kassay")]
    [1.0, 4.0]
    """
    rows = list(timings)
    own = {(row.benchmark, row.case): row.seconds for row in rows if row.contestant == ours}
    return [_with_ratio(row, own.get((row.benchmark, row.case))) for row in rows]


def _with_ratio(row: Timing, own: float | None) -> Timing:
    ratio = own / row.seconds if own is not None and row.seconds else None
    return Timing(**{**asdict(row), "ratio": ratio})


def print_table(timings: Iterable[Timing], stream: TextIO) -> None:
    """Print timings as a table for people."""
    table = Table(title="kassay's time divided by theirs: above 1 they are faster")
    for heading in ("benchmark", "case", "contestant"):
        table.add_column(heading)
    for heading in ("seconds", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("note")
    for row in timings:
        seconds = "not finished" if row.seconds is None else f"{row.seconds:.4f}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        table.add_row(row.benchmark, row.case, row.contestant, seconds, ratio, row.note)
    Console(file=stream, width=140).print(table)


def print_json(timings: Iterable[Timing], stream: TextIO) -> None:
    """Print timings as one line of JSON each."""
    stream.writelines(json.dumps(asdict(row)) + "\n" for row in timings)
