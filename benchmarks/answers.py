"""Record the answers of the solver on fixed groups, and compare two records.

``python -m benchmarks.answers record FILE`` solves all sets of groups with counted work, and
writes one JSON line per group: values, bounds, moves, a hash of the assignment and CPU seconds.
``compare BEFORE AFTER`` prints one line per set, and the groups with a worse value or without the
former proof; the exit code is 1 if there is one, or, in sets with exact levels, if the sum of the
moves is more than 3% higher. ``same ONE TWO`` prints the groups whose lines differ except for the
seconds.
"""

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks import network_shapes, several_constraints, trajectory_speed, typical_groups
from kassay.experiments.planning.plan import plan
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.load_metrics import Measure
from kassay.reference.model.topic_partitions import Partitions
from kassay.solver.constraints import Constraint
from kassay.solver.frontier import frontier
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Level, Movement, TopicSpread, default_levels
from kassay.solver.solve import solve
from kassay.solver.trajectory.trajectory import optimal_trajectory

FIXTURES = Path(__file__).parents[2] / "shared" / "fixtures"
"""Recorded groups; sets that need them are left out where the folder is absent."""

Record = dict[str, Any]
Question = tuple[str, Callable[[], Record]]
"""Name of a group, and the function that solves it."""
_WORK, _PLAN_WORK, _LARGE_WORK = 10.0, 10.0, 30.0
"""Units of work per group: in general, of a plan or frontier, and of large groups."""
_MORE_MOVES = 1.03
"""Permitted ratio of the sums of moves with exact levels."""
_EXACT_SETS = ("exact", "several")
_SPREAD_FIRST = (TopicSpread(), Imbalance(Measure.MAKESPAN), Movement())
_SQUARES = (Imbalance(Measure.SUM_OF_SQUARES), Movement())


def _solved(
    group: Group, levels: Sequence[Level], rules: Sequence[Constraint] = (), work: float = _WORK
) -> Record:
    found = solve(group, levels=levels, constraints=rules, limits=SearchLimits(work=work))
    return {
        "status": str(found.status),
        "levels": [(level.name, level.value, level.bound, level.slack) for level in found.levels],
        "assignment": _digest(found.assignment),
    }


def _digest(assignment: Assignment | None) -> str | None:
    """Return a hash of an assignment, to compare the answers of two runs."""
    if assignment is None:
        return None
    text = json.dumps({member: [*map(str, tps)] for member, tps in assignment.items()})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _typical() -> Iterator[Question]:
    for case in typical_groups.cases(200):
        levels = (*case.levels, Movement())
        yield case.group.id or "", partial(_solved, case.group, levels, case.rules)


def _exact() -> Iterator[Question]:
    levels = (Imbalance(Measure.MAKESPAN), Movement())
    for group in typical_groups.random_groups(60):
        yield group.id or "", partial(_solved, group, levels)


def _constrained() -> Iterator[Question]:
    for case in typical_groups.constrained_cases(100):
        levels = (*case.levels, Movement())
        yield case.group.id or "", partial(_solved, case.group, levels, case.rules)


def _several() -> Iterator[Question]:
    for number, case in enumerate(several_constraints.cases(40)):
        levels = (*case.levels, Movement())
        yield f"{number}: {case.kind}", partial(_solved, case.group, levels, case.rules)


def _large() -> Iterator[Question]:
    for seed in range(4):
        rng = random.Random(seed)
        if seed % 2:
            group = typical_groups.log_normal_group(rng, 1_000, 50)
        else:
            group = typical_groups.zipf_group(rng, 1_000, 50, 0.8)
        yield (
            f"1,000 x 50, seed {seed}",
            partial(_solved, group, default_levels(group), work=_LARGE_WORK),
        )
    for name in ("live_rates/big.json",):
        if (FIXTURES / name).exists():
            big = parse_group(json.loads((FIXTURES / name).read_text()))
            yield name, partial(_solved, big, default_levels(big), work=_LARGE_WORK)


def _equal() -> Iterator[Question]:
    for name, (build, (size, _)) in network_shapes.SHAPES.items():
        group = build(size)
        yield f"{name} {size:,}", partial(_solved, group, default_levels(group))
    spread = FIXTURES / "field" / "spread-first.json"
    if spread.exists():
        group = parse_group(json.loads(spread.read_text()))
        yield ("spread-first.json", partial(_solved, group, _SPREAD_FIRST, work=_LARGE_WORK))


def mixed_group(seed: int) -> Group:
    """Build a weighted group of 24 partitions in 5 topics; 8 members consume 1 to 4 topics each."""
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(1, 24), 4))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, 24], strict=True)]
    names = [f"t{at}" for at in range(5)]
    topics = tuple(
        Topic(
            name, size, weights=tuple(max(1, round(rng.lognormvariate(3, 1))) for _ in range(size))
        )
        for name, size in zip(names, sizes, strict=True)
    )
    chosen = [sorted(rng.sample(names, rng.randint(1, 4))) for _ in range(8)]
    chosen[0] = names
    owned: list[list[tuple[str, int]]] = [[] for _ in chosen]
    for topic in topics:
        consumers = [at for at, subscribed in enumerate(chosen) if topic.name in subscribed]
        for number in range(topic.partitions):
            if rng.random() < 0.85:
                owned[rng.choice(consumers)].append((topic.name, number))
    members = tuple(
        Member(
            f"c{at}", subscription=tuple(chosen[at]), owned=Partitions.of(owned[at]), generation=1
        )
        for at in range(8)
    )
    return Group(topics, members, id=f"mixed {seed}")


def _mixed() -> Iterator[Question]:
    for seed in range(60):
        group = mixed_group(seed)
        yield f"mixed {seed}", partial(_solved, group, default_levels(group))
    for name in ("mixed-makespan", "squares-1", "squares-2"):
        path = FIXTURES / "field" / f"{name}.json"
        if path.exists():
            group = parse_group(json.loads(path.read_text()))
            levels = _SQUARES if name.startswith("squares") else default_levels(group)
            yield name, partial(_solved, group, levels, work=_LARGE_WORK)


def _trajectories() -> Iterator[Question]:
    size = trajectory_speed.StreamSize(12, 100, 40, 10)
    streams = {
        "services": trajectory_speed.services(size),
        "random subscriptions": trajectory_speed.random_subscriptions(size),
    }
    for name, groups in streams.items():
        yield name, partial(_trajectory, groups)


def _trajectory(groups: Sequence[Group]) -> Record:
    found = optimal_trajectory(groups, limits=SearchLimits(work=_WORK))
    status = "optimal" if found.is_optimal else "feasible"
    return {"status": status, "levels": [("moves in total", found.moves, found.bound, 0)]}


def _plans() -> Iterator[Question]:
    for case in typical_groups.cases(24):
        yield case.group.id or "", partial(_planned, case.group, case.rules)


def _planned(group: Group, rules: Sequence[Constraint]) -> Record:
    found = plan(group, constraints=rules, limits=SearchLimits(work=_PLAN_WORK))
    levels = [(one.name, one.value, one.bound, one.slack) for one in found.solution.levels]
    return {"status": str(found.solution.status), "levels": levels}


def _frontiers() -> Iterator[Question]:
    for case in list(typical_groups.cases(40))[::4]:
        if not case.rules:
            yield case.group.id or "", partial(_frontier, case.group)


def _frontier(group: Group) -> Record:
    found = frontier(group, max_points=12, limits=SearchLimits(work=_PLAN_WORK))
    points = [
        (f"{one.movement.value} moves", one.imbalance.value, one.imbalance.bound, 0)
        for one in found.points
    ]
    proven = all(value == bound for _, value, bound, _ in points)
    return {"status": "optimal" if proven else "feasible", "levels": points}


SETS: dict[str, Callable[[], Iterable[Question]]] = {
    "typical": _typical,
    "constrained": _constrained,
    "equal": _equal,
    "mixed": _mixed,
    "large": _large,
    "trajectories": _trajectories,
    "several": _several,
    "exact": _exact,
    "plans": _plans,
    "frontiers": _frontiers,
}
"""Sets of groups, in the order in which they are recorded."""


def record(path: Path, sets: Sequence[str], most: int | None) -> None:
    """Solve the groups of the sets, and write one JSON line per group."""
    with path.open("a") as out:
        for name in sets:
            for number, (group, answer) in enumerate(SETS[name]()):
                if most is not None and number >= most:
                    break
                start = time.process_time()
                found = answer()
                seconds = round(time.process_time() - start, 3)
                line = {"set": name, "group": group, **found, "cpu_seconds": seconds}
                print(json.dumps(line), file=out, flush=True)
            print(f"recorded {name}", file=sys.stderr)


def compare(before: Path, after: Path) -> int:
    """Print a table of two records per set, and the groups with a worse answer."""
    old, new = _lines(before), _lines(after)
    keys = [key for key in old if key in new]
    failed = 0
    print("set | groups | proven | worse | better | moves | CPU s")
    for name, found in groupby(keys, key=lambda key: key[0]):
        pairs = [(old[key], new[key]) for key in found]
        worse = [(one, two) for one, two in pairs if _rank(two) > _rank(one) or _unproven(one, two)]
        better = sum(_rank(two) < _rank(one) for one, two in pairs)
        moves = [sum(map(_moves, each)) for each in zip(*pairs, strict=True)]
        proven = [
            sum(one["status"] == "optimal" for one in each) for each in zip(*pairs, strict=True)
        ]
        seconds = [sum(one["cpu_seconds"] for one in each) for each in zip(*pairs, strict=True)]
        print(
            f"{name} | {len(pairs)} | {proven[0]} -> {proven[1]} | {len(worse)} | {better} "
            f"| {moves[0]:,} -> {moves[1]:,} | {seconds[0]:.0f} -> {seconds[1]:.0f}"
        )
        for one, two in worse:
            print(f"  {one['group']}: {one['levels']} -> {two['levels']}")
        exact = name in _EXACT_SETS
        failed += moves[1] > moves[0] * _MORE_MOVES if exact else len(worse)
    return int(failed > 0)


def differing(one: Path, two: Path) -> int:
    """Print the groups whose lines differ except for the seconds; return the exit code."""
    first, second = _lines(one), _lines(two)
    differences = 0
    for key in first:
        lines = [{**each.get(key, {}), "cpu_seconds": 0} for each in (first, second)]
        if lines[0] != lines[1]:
            differences += 1
            print(f"{key[0]}, {key[1]}: {lines[0]} and {lines[1]}")
    print(f"{len(first)} answers, {differences} of them differ")
    return int(differences > 0)


def _lines(path: Path) -> dict[tuple[str, str], Record]:
    lines = map(json.loads, path.read_text().splitlines())
    return {(line["set"], line["group"]): line for line in lines}


def _rank(line: Record) -> tuple[float, ...]:
    """Return the values of the levels, where a value within the tolerance is the limit."""
    return tuple(max(value, bound + slack) for _, value, bound, slack in line["levels"]) or (
        float("inf"),
    )


def _unproven(one: Record, two: Record) -> bool:
    return one["status"] == "optimal" != two["status"]


def _moves(line: Record) -> int:
    named = [value for name, value, *_ in line["levels"] if name == "movement"]
    return named[0] if named else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Record answers, or compare two records."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="solve the groups, and write a record")
    recording.add_argument("file", type=Path, help="file to which lines are appended")
    recording.add_argument("--set", dest="sets", action="append", choices=[*SETS], help="a set")
    recording.add_argument("--most", type=int, help="number of groups per set; all by default")
    comparing = commands.add_parser("compare", help="compare two records")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    same = commands.add_parser("same", help="check that two records differ in seconds only")
    same.add_argument("before", type=Path)
    same.add_argument("after", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "record":
        record(options.file, options.sets or [*SETS], options.most)
        return 0
    function = compare if options.command == "compare" else differing
    return function(options.before, options.after)


if __name__ == "__main__":
    raise SystemExit(main())
