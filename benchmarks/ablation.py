"""Measure the solver without one row of its table after the other.

``python -m benchmarks.ablation`` solves a sample of groups with all rows of `kassay.solver.engine`,
and each group again without each row that ran for it. For each row, there are also groups of the
kind for which the row exists, which are solved again without this row only. It prints a Markdown
table with one line per row:

sample
    Groups for which the row ran. Without it, nothing changes for the others.
values worse, bounds worse
    Groups with a worse value or without an answer without the row, and with a lower bound on a
    level up to which the values are equal.
proofs lost
    Groups whose optimum or conflict is proven with the row only, or whose conflict only CP-SAT
    proves without it.
moves more
    Moves of all groups with both answers without the row, minus those with the row.
CPU ratio
    CPU seconds without the row, divided by those with it.

The work per group is counted, so that all columns except the last one are reproducible.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from rich.progress import track

from benchmarks import network_shapes, several_constraints, typical_groups
from benchmarks.answers import mixed_group
from benchmarks.few_moves.instances import instance
from benchmarks.typical_groups import Case, log_normal_group, zipf_group
from benchmarks.weighted_groups import weighted_group
from kassay.reference.model.errors import InternalError, UsageError
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.load_metrics import Measure
from kassay.solver import engine
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import Capacity, Constraint, MaxMoves, MaxPartitions, Pinned
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import (
    CrossRack,
    IdleMembers,
    Imbalance,
    Level,
    Movement,
    Slots,
    Tolerance,
    default_levels,
)
from kassay.solver.solution import LevelValue, Method, Status
from kassay.solver.solve import solve
from tests.solver.adversarial_cases import AdversarialCase, adversarial_case
from tests.solver.void_additions import LIMITS, Call, medium_call, void_additions

TABLES = ("METHODS", "STARTS", "BOUNDS", "SEARCHES")
"""Parts of the table of the engine."""
_SEEDS = 200
"""Number of typical groups, of which the sample takes some at equal distances."""
_MAKESPAN, _SQUARES = Imbalance(Measure.MAKESPAN), Imbalance(Measure.SUM_OF_SQUARES)


class Trial(NamedTuple):
    """Group with the work to solve it, the method, and the work to find its warm start."""

    case: Case
    work: float = 1.5
    method: Method = Method.AUTO
    warm_start_work: float = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Levels of one answer, None without an answer, and the CPU seconds."""

    levels: tuple[LevelValue, ...] | None
    seconds: float
    proof: int = 0
    """1 if only CP-SAT proves a conflict, 2 for other proofs of a conflict or an optimum."""

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


def general_trials(count: int) -> Iterator[Trial]:
    """Yield groups of four kinds: typical, equal weights, several constraints, mixed topics."""
    step = max(1, _SEEDS // count)
    typical = [*islice(typical_groups.cases(_SEEDS), 0, count * step, step)]
    equal = (_with_equal_weights(case) for case in typical if not case.rules)
    mixed = (Case("mixed", mixed_group(seed), (_MAKESPAN,)) for seed in range(count))
    yield from map(Trial, chain(typical, equal, several_constraints.cases(count), mixed))


def trials_of_rows() -> dict[str, list[Trial]]:
    """Return groups of the kind for which a row exists, by name of the row."""
    typical, constrained = [*typical_groups.cases(60)], [*typical_groups.constrained_cases(17)]
    plain = [case for case in typical[:10] if case.kind.startswith("Zipf")]
    racks, hosts, speeds = (typical[at:45:10] for at in (3, 5, 6))
    several, rng = [*several_constraints.cases(8)], random.Random(1)
    large = [
        Case("large", log_normal_group(rng, 1_000, 50)),
        Case("large", zipf_group(rng, 600, 30, 0.8)),
    ]
    small, void = Case("small", log_normal_group(rng, 9, 3)), _void_addition(16)
    shapes = (network_shapes.path(2_000), network_shapes.chain(500), network_shapes.staircase(300))
    return {
        "one flow": [Trial(Case("shape", one, default_levels(one))) for one in shapes],
        "flows with arc costs": _trials([_shared_case(20)]),
        "enumeration": [one for measure in Measure for one in _trials([small], Imbalance(measure))],
        "flows of the first levels": _trials(
            [_changed(_with_equal_weights(case), MaxMoves(30)) for case in plain[:3]], _SQUARES
        ),
        "owned partitions stay": _trials(
            [*speeds[:2], *plain[:2]], Movement(), _MAKESPAN, work=0.2
        ),
        "heaviest partitions first": [
            *_trials([speeds[0], hosts[0], plain[0]], Imbalance(Measure.SPREAD), work=0.05),
            *_trials([speeds[1], hosts[1], large[0]], _SQUARES, work=0.05),
        ],
        "given placements": [Trial(case, 0.1, warm_start_work=2) for case in large],
        "merged partitions": _trials(constrained[3:12:4]),
        "heaviest partitions first within racks": _trials(
            racks[1::2], CrossRack(), *racks[0].levels[:1], work=1
        ),
        "heaviest partitions first within constraints": _trials(constrained[8::4], work=1),
        "rounded weights": _trials(map(_scaled, (*plain[:2], typical[1])), work=0.5),
        "conflict of numbers": _trials(map(_crowded, plain[:3])),
        "repair from any start": _trials([*several[3:8], constrained[3]], work=0.3),
        "CP-SAT for any placement": _trials(map(_with_least_capacities, plain[:2])),
        "enumeration without a placement": [
            Trial(_case_of(adversarial_case(seed)), method=Method.CP_SAT) for seed in (729, 870)
        ],
        "constraints one by one": _trials([_case_of(void)], work=LIMITS.work),
        "few moves within the makespan": _trials([typical[at] for at in (7, 12, 17)]),
        "repair within the lowest loads": _trials([*speeds[:2], *hosts[:2], racks[0]]),
        "counting": _trials([_changed(case, MaxMoves(9)) for case in plain[:3]], _SQUARES, work=1),
        "flows and merged partitions": _trials(constrained[3:12:4]),
        "earlier searches for moves": _trials([typical[at] for at in (20, 45, 55)], work=3),
        "room of members": _trials([typical[at] for at in (38, 48)], work=0.6),
        "lower loads within few moves": _trials(
            [_changed(case, MaxMoves(12)) for case in plain[:3]]
        ),
        "greedy moves": [
            one
            for measure in (Measure.SUM_OF_SQUARES, Measure.SPREAD)
            for one in _trials(plain[:3], Imbalance(measure, Tolerance(relative=0.05)), work=1)
        ],
        "few moves of small groups": _trials([typical[at] for at in (24, 25, 28)], work=3),
        "balancing": _trials([_case_of(medium_call(1)), typical[24], typical[29]], work=0.5),
        "moves before loads": _trials([typical[at] for at in (4, 45, 55)], work=3),
        "packing of identical members": _trials(map(_packing, range(3))),
        "spreading of moved partitions": _trials(plain[:3], *default_levels(plain[0].group)),
        "exchanges and column generation": _trials([_few_moves_case(), large[1]]),
    }


def _trials(groups: Iterable[Case], *levels: Level, work: float = 1.5) -> list[Trial]:
    """Return trials, with other levels if there are some."""
    return [Trial(case._replace(levels=levels or case.levels), work) for case in groups]


def _changed(case: Case, *rules: Constraint) -> Case:
    return case._replace(rules=(*case.rules, *rules))


def _case_of(call: Call | AdversarialCase) -> Case:
    return Case("drawn", call.group, call.levels, call.constraints)


def _with_equal_weights(case: Case) -> Case:
    topics = tuple(replace(topic, weights=None) for topic in case.group.topics)
    return case._replace(group=replace(case.group, topics=topics))


def _scaled(case: Case) -> Case:
    """Return a case with loads beyond 64 bits."""
    (topic,) = case.group.topics
    weights = tuple((weight << 40) + at for at, weight in enumerate(topic.weights or ()))
    return case._replace(group=replace(case.group, topics=(replace(topic, weights=weights),)))


def _shared_case(members: int) -> Case:
    """Build a group with one to three members per partition."""
    topic = Topic("t", 3 * members, copies=((1, 3),) * 3 * members)
    group = Group((topic,), tuple(Member(f"m{at}", ("t",)) for at in range(members)))
    return Case("copies", group, (Slots(), _SQUARES, IdleMembers()))


def _crowded(case: Case) -> Case:
    """Pin more partitions to a member than it may have."""
    (topic,), (first, *_) = case.group.topics, case.group.members
    most = topic.partitions // len(case.group.members) + 2
    pins = (Pinned(topic.name, at, first.id) for at in range(most + 1))
    return _changed(case, MaxPartitions(most), MaxMoves(topic.partitions), *pins)


def _with_least_capacities(case: Case) -> Case:
    """Limit the loads to their mean, rounded down."""
    return _changed(case, Capacity(case.group.topics[0].total_weight // len(case.group.members)))


def _void_addition(seed: int) -> Call:
    """Return a group with many constraints that an answer with few of them meets."""
    call = medium_call(seed)
    return [*void_additions(call, call.solve(LIMITS), seed)][7]


def _few_moves_case() -> Case:
    one = instance("log-normal/identical/in-turn/exact/300/20/1")
    level = Imbalance(Measure.MAKESPAN, Tolerance(up_to=one.max_load))
    return Case("few moves", one.group, (level,))


def _packing(seed: int) -> Case:
    """Return identical members that own nothing, with three to four partitions each."""
    rng, members = random.Random(seed), 10 + 5 * seed
    weights = [rng.randint(200, 1_000) for _ in range(members * 7 // 2)]
    return Case("packing", weighted_group(weights, [-1] * len(weights), members), (_MAKESPAN,))


def answer(trial: Trial) -> Answer:
    """Solve a group with its levels, and the moves after them if they do not contain them."""
    case, levels = trial.case, trial.case.levels
    if not any(isinstance(level, Movement) for level in levels):
        levels = (*levels, Movement())
    call = partial(solve, case.group, levels=levels, constraints=case.rules, method=trial.method)
    warm = trial.warm_start_work and call(limits=SearchLimits(work=trial.warm_start_work))
    start = time.process_time()
    try:
        found = call(
            limits=SearchLimits(work=trial.work),
            initial_assignment=warm.assignment if warm else None,
        )
    except (InternalError, UsageError):  # no other row has a result
        return Answer(None, time.process_time() - start)
    seconds, proof = time.process_time() - start, 2 * (found.status is not Status.FEASIBLE)
    certificate = found.certificate
    if certificate is None:
        proof = 0
    elif certificate.conflict is not None:
        proof = 1 if certificate.conflict.origin is Origin.CP_SAT else 2
    return Answer(found.levels, seconds, proof)


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


def without_row(name: str) -> AbstractContextManager[None]:
    """Remove one row of the table."""
    return changed_rows(lambda row: None if row.name == name else row)


def row_names() -> list[str]:
    """Return the names of all rows in the order in which they run."""
    return [row.name for name in TABLES for row in getattr(engine, name)]


def recorded_answer(trial: Trial) -> tuple[Answer, set[str]]:
    """Solve a group with all rows, and return the names of the rows that ran."""
    ran: set[str] = set()

    def recorded(row: Any) -> Any:
        def run(task: Any) -> Any:
            ran.add(row.name)
            return row.run(task)

        return row._replace(run=run)

    with changed_rows(recorded):
        return answer(trial), ran


def compared_answers(trial: Trial, only: str | None = None) -> dict[str, tuple[Answer, Answer]]:
    """Return the answers with and without each row that ran, or only one of them."""
    known, ran = recorded_answer(trial)
    pairs = {}
    for name in ran if only is None else ran & {only}:
        with without_row(name):
            pairs[name] = known, answer(trial)
    return pairs


def line(name: str, pairs: Sequence[tuple[Answer, Answer]]) -> str:
    """Return the line of a row from the answers with and without it."""
    if not pairs:
        return f"| {name} | 0 | | | | | |"
    worse = sum(without.values > known.values for known, without in pairs)
    lower = sum(without.has_lower_bound(known) for known, without in pairs)
    lost = sum(known.proof > without.proof for known, without in pairs)
    moves = sum(two.moves - one.moves for one, two in pairs if one.levels and two.levels)
    seconds = [sum(each.seconds for each in answers) for answers in zip(*pairs, strict=True)]
    ratio = seconds[1] / max(seconds[0], 1e-9)
    return f"| {name} | {len(pairs)} | {worse} | {lower} | {lost} | {moves:+,} | {ratio:.2f} |"


def measure(trials: Sequence[tuple[Trial, str | None]], processes: int = 1) -> list[str]:
    """Return the lines of the table; each group is solved without all rows, or without one."""
    pairs: dict[str, list[tuple[Answer, Answer]]] = {name: [] for name in row_names()}
    with ProcessPoolExecutor(processes) as pool:
        solved = pool.map(compared_answers, *zip(*trials, strict=True))
        hidden = not sys.stderr.isatty()
        for found in track(solved, "groups", total=len(trials), disable=hidden):
            for name, pair in found.items():
                pairs[name].append(pair)
    columns = "method | sample | values worse | bounds worse | proofs lost | moves more | CPU ratio"
    head = [f"| {columns} |", "|---" + "|--:" * 6 + "|"]
    return [*head, *(line(name, found) for name, found in pairs.items())]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=2, help="general groups of each kind")
    parser.add_argument(
        "--rows", nargs="*", help="rows whose own groups are solved; all by default"
    )
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    trials: list[tuple[Trial, str | None]] = [
        (trial, None) for trial in (general_trials(options.sample) if options.sample else ())
    ]
    for name, own in trials_of_rows().items():
        if options.rows is None or name in options.rows:
            trials += [(trial, name) for trial in own]
    print("\n".join(measure(trials, options.processes)))


if __name__ == "__main__":
    main()
