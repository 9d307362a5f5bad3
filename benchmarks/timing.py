"""Measure the time of function calls, and print the results of the benchmarks."""

import gc
import json
import multiprocessing
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import TextIO, TypeVar, TypeVarTuple

from rich.console import Console
from rich.table import Table

KASSAY = "kassay"
_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Time of one implementation on one benchmark case.

    ``seconds`` is the best of the repetitions; None if the time limit was reached.
    ``ratio`` is kassay's time divided by it; below 1, kassay is faster.
    """

    benchmark: str
    case: str
    implementation: str = KASSAY
    seconds: float | None
    ratio: float | None = None
    note: str = ""


def run_alone(function: Callable[[*_Arguments], _Result], *arguments: *_Arguments) -> _Result:
    """Call a function in a new process, without the memory and threads of this process.

    Examples
    --------
    >>> run_alone(abs, -3)
    3
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(function, *arguments).result()


def best_seconds(
    call: Callable[[], object],
    *,
    repetitions: int = 5,
    budget: float = 20.0,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return the shortest seconds of repeated calls, without garbage collection.

    Parameters
    ----------
    call
        Function to time.
    repetitions
        Maximum number of calls.
    budget
        Wall-clock seconds after which no further call starts; there is always one call.
    clock
        Function that returns seconds, by default the CPU time of this process.

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
            start = clock()
            call()
            best = min(best, clock() - start)
        finally:
            gc.enable()
        if time.perf_counter() > deadline:
            break
    return best


def with_ratios(timings: Iterable[Timing]) -> list[Timing]:
    """Set the ratio of every timing: kassay's time on the same case divided by this time.

    Examples
    --------
    >>> rows = [
    ...     Timing(benchmark="b", case="c", implementation="kassay", seconds=2.0),
    ...     Timing(benchmark="b", case="c", implementation="Java", seconds=0.5),
    ... ]
    >>> [row.ratio for row in with_ratios(rows)]
    [1.0, 4.0]
    """
    rows = list(timings)
    own = {(row.benchmark, row.case): row.seconds for row in rows if row.implementation == KASSAY}
    return [_with_ratio(row, own.get((row.benchmark, row.case))) for row in rows]


def _with_ratio(row: Timing, own: float | None) -> Timing:
    return replace(row, ratio=own / row.seconds if own is not None and row.seconds else None)


def print_table(timings: Iterable[Timing], stream: TextIO) -> None:
    """Print timings as a table to a text stream."""
    table = Table(title="ratio: kassay's time divided by the other time; below 1, kassay is faster")
    for heading in ("benchmark", "case", "implementation"):
        table.add_column(heading)
    for heading in ("seconds", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("note")
    for row in timings:
        seconds = "–" if row.seconds is None else f"{row.seconds:.4f}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        table.add_row(row.benchmark, row.case, row.implementation, seconds, ratio, row.note)
    Console(file=stream, width=140).print(table)


def print_json(timings: Iterable[Timing], stream: TextIO) -> None:
    """Print timings as JSON lines to a text stream."""
    stream.writelines(json.dumps(asdict(row)) + "\n" for row in timings)
