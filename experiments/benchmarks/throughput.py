"""Groups a second through Spark, beside plain processes over the same function."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.pool import Pool

from experiments.benchmarks.timing import Timing, best_seconds
from experiments.families import Case, family_cases
from experiments.spark.pipeline import sweep
from experiments.spark.session import spark_session
from experiments.spark.tables import record_row
from experiments.study import study

GROUPS = 4_000
PROCESSES = 2
_CHUNK = 24
_ROUNDS = 3
_ASSIGNORS = ("sticky", "cooperative-sticky", "uniform")


def throughput(ours: str = "kassay") -> Iterator[Timing]:
    """Study groups of some milliseconds on two cores: on Spark, and by `multiprocessing`.

    Both are up and warm before they are timed, and both return the rows to this process.
    """
    name = "overlap-random"
    cases = list(family_cases(name, seeds=GROUPS, assignors=_ASSIGNORS))
    case = f"{GROUPS:,} groups of {name}, {PROCESSES} processes"
    # The pool comes first: a process that runs threads had better not fork.
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        _by_pool(pool, cases[: GROUPS // 4])
        seconds = {"multiprocessing": _best(partial(_by_pool, pool, cases))}
    with spark_session(master=f"local[{PROCESSES}]") as spark:
        sweep(spark, cases[: GROUPS // 4])
        seconds[ours] = _best(partial(sweep, spark, cases))
    overhead = (seconds[ours] - seconds["multiprocessing"]) * PROCESSES / GROUPS
    for contestant in (ours, "multiprocessing"):
        spent = seconds[contestant]
        note = f"{GROUPS / spent:.0f} groups a second"
        if contestant == ours:
            share = seconds["multiprocessing"] / spent
            note += f", {share:.0%} of multiprocessing, {1e3 * overhead:+.2f} ms a group"
        yield Timing(
            benchmark="throughput", case=case, contestant=contestant, seconds=spent, note=note
        )


def _best(call: Callable[[], object]) -> float:
    return best_seconds(call, repetitions=_ROUNDS, budget=120.0)


def _by_pool(pool: Pool, cases: Sequence[Case]) -> int:
    return len(pool.map(_rows, cases, chunksize=_CHUNK))


def _rows(case: Case) -> object:
    return record_row(study(case))
