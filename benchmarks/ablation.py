"""Measure the solver without one row of its table after the other.

``python -m benchmarks.ablation`` solves a sample of groups with all rows of `kassay.solver.engine`,
and each group again without each row that ran for it. It prints a Markdown table with one line per
row:

sample
    Groups for which the row ran. Without it, nothing changes for the others.
values worse, bounds worse
    Groups with a worse value without the row, and with a lower bound on a level up to which the
    values are equal.
proofs lost
    Groups whose optimum is proven with the row only.
moves more
    Moves of all groups with both answers without the row, minus those with the row.
CPU ratio
    CPU seconds without the row, divided by those with it.

The work per group is counted, so that all columns except the last one are reproducible.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from rich.progress import track

from benchmarks import several_constraints
from benchmarks.answers import mixed_group
from benchmarks.typical_groups import Case, cases
from kassay.reference.model.errors import InternalError
from kassay.reference.model.metrics import Measure
from kassay.solver import engine
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.solution import LevelValue
from kassay.solver.solve import solve

TABLES = ("METHODS", "STARTS", "BOUNDS", "SEARCHES")
"""Parts of the table of the engine."""
_SEEDS = 200
"""Number of typical groups, of which the sample takes some at equal distances."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Levels of one answer, None without an answer, and the CPU seconds."""

    levels: tuple[LevelValue, ...] | None
    is_optimal: bool
    seconds: float

    @property
    def values(self) -> tuple[float, ...]:
        """Return the values, where a value within the tolerance is the limit."""
        if not self.levels:
            return (float("inf"),)
        return tuple(max(one.value, one.bound + one.slack) for one in self.levels)

    @property
    def moves(self) -> int:
        """Return the number of moves."""
        return sum(one.value for one in self.levels or () if one.name == Movement.name)

    def has_lower_bound(self, other: "Answer") -> bool:
        """Return whether a bound is lower than another one within equal values before."""
        for own, known in zip(self.levels or (), other.levels or (), strict=False):
            if own.bound < known.bound:
                return True
            if own.value != known.value:
                return False
        return False


def sample_groups(count: int) -> Iterator[Case]:
    """Yield groups of four kinds: typical, equal weights, several constraints, mixed topics."""
    step = max(1, _SEEDS // count)
    typical = [*islice(cases(_SEEDS), 0, count * step, step)]
    yield from typical
    yield from (_with_equal_weights(case) for case in typical if not case.rules)
    yield from several_constraints.cases(count)
    for seed in range(count):
        yield Case("mixed", mixed_group(seed), (Imbalance(Measure.MAKESPAN),))


def _with_equal_weights(case: Case) -> Case:
    topics = tuple(replace(topic, weights=None) for topic in case.group.topics)
    return case._replace(group=replace(case.group, topics=topics))


def answer(case: Case, work: float) -> Answer:
    """Solve a group with its levels before the moves, and the moves."""
    start = time.process_time()
    try:
        found = solve(
            case.group,
            levels=(*case.levels, Movement()),
            constraints=case.rules,
            limits=SearchLimits(work=work),
        )
    except InternalError:  # no other row has a result
        return Answer(None, is_optimal=False, seconds=time.process_time() - start)
    return Answer(found.levels, found.is_optimal, time.process_time() - start)


@contextmanager
def changed_rows(change: Callable[[Any], Any | None]) -> Iterator[None]:
    """Replace each row of the table by the result of a function, or remove it for None."""
    before = {name: getattr(engine, name) for name in TABLES}
    try:
        for name, rows in before.items():
            setattr(engine, name, tuple(new for row in rows if (new := change(row)) is not None))
        yield
    finally:
        for name, rows in before.items():
            setattr(engine, name, rows)


def row_names() -> list[str]:
    """Return the names of all rows in the order in which they run."""
    return [row.name for name in TABLES for row in getattr(engine, name)]


def recorded_answer(case: Case, work: float) -> tuple[Answer, set[str]]:
    """Solve a group with all rows, and return the names of the rows that ran."""
    ran: set[str] = set()

    def recorded(row: Any) -> Any:
        def run(task: Any) -> Any:
            ran.add(row.name)
            return row.run(task)

        return row._replace(run=run)

    with changed_rows(recorded):
        return answer(case, work), ran


def line(name: str, pairs: Sequence[tuple[Answer, Answer]]) -> str:
    """Return the line of a row from the answers with and without it."""
    if not pairs:
        return f"| {name} | 0 | | | | | |"
    worse = sum(without.values > known.values for known, without in pairs)
    lower = sum(without.has_lower_bound(known) for known, without in pairs)
    lost = sum(known.is_optimal and not without.is_optimal for known, without in pairs)
    moves = sum(two.moves - one.moves for one, two in pairs if one.levels and two.levels)
    seconds = [sum(each.seconds for each in answers) for answers in zip(*pairs, strict=True)]
    ratio = seconds[1] / max(seconds[0], 1e-9)
    return f"| {name} | {len(pairs)} | {worse} | {lower} | {lost} | {moves:+,} | {ratio:.2f} |"


def measure(groups: Iterable[Case], work: float) -> list[str]:
    """Return the lines of the table."""
    pairs: dict[str, list[tuple[Answer, Answer]]] = {name: [] for name in row_names()}
    for case in groups:
        known, ran = recorded_answer(case, work)
        for name in ran:
            with changed_rows(lambda row, name=name: None if row.name == name else row):
                pairs[name].append((known, answer(case, work)))
    columns = "method | sample | values worse | bounds worse | proofs lost | moves more | CPU ratio"
    head = [f"| {columns} |", "|---" + "|--:" * 6 + "|"]
    return [*head, *(line(name, found) for name, found in pairs.items())]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=8, help="groups of each kind")
    parser.add_argument("--work", type=float, default=1.5, help="units of work per group")
    options = parser.parse_args(arguments)
    groups = [*sample_groups(options.sample)]
    answer(groups[0], options.work)  # loads the libraries
    shown = track(groups, "groups", disable=not sys.stderr.isatty())
    print("\n".join(measure(shown, options.work)))


if __name__ == "__main__":
    main()
