"""Groups a second through Spark, beside plain processes over the same function."""

import multiprocessing
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing.pool import Pool
from statistics import median

from benchmarks.timing import Timing, best_seconds
from kassay.experiments.spark.session import spark_session
from kassay.experiments.spark.study_pipeline import evaluate_cases
from kassay.experiments.spark.table_schemas import record_row
from kassay.experiments.study.case import Case, family_cases
from kassay.experiments.study.evaluate_case import evaluate_case

GROUPS = 4_000
PROCESSES = 2
_CHUNK = 24
_ROUNDS = 5
_ASSIGNORS = ("sticky", "cooperative-sticky", "uniform")


def throughput(ours: str = "kassay") -> Iterator[Timing]:
    """Study groups of some milliseconds on two cores: on Spark, and by `multiprocessing`.

    Both are up and warm before they are timed, and both return the rows to this process. They
    take turns, since a machine has faster and slower minutes: the share is the median over the
    rounds, in each of which both are timed.
    """
    name = "overlap-random"
    cases = list(family_cases(name, seeds=GROUPS, assignors=_ASSIGNORS))
    case = f"{GROUPS:,} groups of {name}, {PROCESSES} processes"
    # The pool comes first: a process that runs threads had better not fork.
    with (
        multiprocessing.get_context("spawn").Pool(PROCESSES) as pool,
        spark_session(master=f"local[{PROCESSES}]") as spark,
    ):
        run = {"multiprocessing": partial(_by_pool, pool), ours: partial(evaluate_cases, spark)}
        for study_all in run.values():
            study_all(cases[: GROUPS // 4])
        rounds = [
            {name: best_seconds(partial(run[name], cases), repetitions=1) for name in run}
            for _ in range(_ROUNDS)
        ]
    plain = "multiprocessing"
    share = median(took[plain] / took[ours] for took in rounds)
    overhead = median((took[ours] - took[plain]) * PROCESSES / GROUPS for took in rounds)
    for contestant in (ours, plain):
        spent = min(took[contestant] for took in rounds)
        note = f"{GROUPS / spent:.0f} groups a second"
        if contestant == ours:
            note += f", {share:.0%} of multiprocessing, {1e3 * overhead:+.2f} ms a group"
        yield Timing(
            benchmark="throughput", case=case, contestant=contestant, seconds=spent, note=note
        )


def _by_pool(pool: Pool, cases: Sequence[Case]) -> int:
    return len(pool.map(_rows, cases, chunksize=_CHUNK))


def _rows(case: Case) -> object:
    return record_row(evaluate_case(case))
