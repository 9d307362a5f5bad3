"""Moves above hindsight, and the price of balance, on the event streams of the published study.

``python -m benchmarks.published_streams out/streams.jsonl --seconds 2400`` measures streams in the
order of their seeds, and adds a line per stream to the file. ``--again`` searches the values that
are not proven again, and ``--print`` prints the tables.
"""

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rebalance_rules import (
    ASSIGNORS,
    FEWEST,
    RULES,
    by_assignor,
    by_rule,
    moves_of,
    share,
)
from kassay.experiments.study.families.event_streams import EVENT_STREAMS, StreamStep
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Tolerance, default_levels
from kassay.solver.trajectory.trajectory import optimal_trajectory

Row = Mapping[str, Any]
HINDSIGHT = "hindsight"
_RULE = "spread topics"
_COURSES = (FEWEST, _RULE, *ASSIGNORS)
_TOLERANCES = (0, 1, 5, 10)  # per cent of the minimum of the maximum load
_SIZES = ((2, 7), (8, 15), (16, 31), (32, 1000))  # members at the start


def measure(seed: int, *, limit: float, max_balance: int) -> Row:
    """Measure one stream: moves per rebalance of each course, and the moves per tolerance."""
    steps = list(EVENT_STREAMS.stream(seed))
    groups = _groups(steps)
    best = optimal_trajectory(groups, limits=SearchLimits(time=limit))
    courses = {
        HINDSIGHT: best.per_rebalance,
        FEWEST: best.one_after_the_other,
        _RULE: moves_of(groups, partial(by_rule, rule=RULES[_RULE])),
        **{name: moves_of(groups, partial(by_assignor, assignor=name)) for name in ASSIGNORS},
    }
    tolerances = _TOLERANCES if size_of(steps[0]) <= max_balance else ()
    return {
        "seed": seed,
        "members": len(steps[0].members),
        "partitions": groups[0].partition_count,
        "mixed": any(len({m.subscription for m in group.members}) > 1 for group in groups),
        "events": [str(step.event) for step in steps],
        "courses": courses,
        "bound": best.bound,
        "balance": {percent: _totals(groups, percent, limit) for percent in tolerances},
    }


def measure_again(row: Row, *, limit: float) -> Row:
    """Search the unproven values of a stream again, and keep the better moves and bounds."""
    groups = _groups(EVENT_STREAMS.stream(row["seed"]))
    moves, bound, balance = row["courses"][HINDSIGHT], row["bound"], dict(row["balance"])
    if not _is_proven(row):
        best = optimal_trajectory(groups, limits=SearchLimits(time=limit))
        moves = min(moves, [*best.per_rebalance], key=sum)
        bound = max(bound, best.bound)
    for percent, (value, lower, each) in row["balance"].items():
        if value > lower:
            found = _totals(groups, int(percent), limit)
            balance[percent] = (min(value, found[0]), max(lower, found[1]), each)
    courses = {**row["courses"], HINDSIGHT: moves}
    return {**row, "courses": courses, "bound": bound, "balance": balance}


def _groups(steps: Iterable[StreamStep]) -> list[Group]:
    return [Group(topics=step.topics, members=step.members) for step in steps]


def size_of(step: StreamStep) -> int:
    """Return the product of members and partitions."""
    return len(step.members) * sum(topic.partitions for topic in step.topics)


def _totals(groups: Sequence[Group], percent: int, limit: float) -> tuple[int, int, int]:
    """Return the moves, their bound, and the fewest moves at each rebalance, of a tolerance."""
    tolerance = Tolerance(relative=percent / 100)
    levels = default_levels(groups[0], measure=Measure.MAKESPAN, tolerance=tolerance)
    found = optimal_trajectory(groups, levels=levels, limits=SearchLimits(time=limit))
    return found.moves, found.bound, sum(found.one_after_the_other)


def print_tables(rows: Sequence[Row]) -> None:
    """Print the moves above hindsight by size and by event, and the price of balance."""
    proven = [row for row in rows if _is_proven(row)]
    print(f"streams {len(rows)}, proven {len(proven)}, seeds up to {rows[-1]['seed']}\n")
    _print_table(("streams", "number", "proven", "moves with hindsight", *_COURSES), _sizes(rows))
    _print_table(("event", "rebalances", "moves with hindsight", *_COURSES), _events(proven))
    columns = ("maximum load", "proven", "moves with hindsight", "bound", *_COURSES[:1], *ASSIGNORS)
    _print_table(columns, _balance([row for row in rows if row["balance"]]))


def _sizes(rows: Sequence[Row]) -> Iterator[Sequence[object]]:
    """Yield the moves above hindsight, in per cent, of proven streams by kind and size.

    The rows "at least" have the moves of all streams above the best known moves.
    """
    for mixed, kind in ((False, "equal"), (True, "mixed")):
        own = [row for row in rows if row["mixed"] == mixed]
        for low, high in _SIZES:
            sized = [row for row in own if low <= row["members"] <= high]
            if sized:
                yield f"{kind}, {low} to {high}", *_moves(sized)
        yield f"{kind}, all", *_moves(own)
        yield f"{kind}, at least", *_moves(own, only_proven=False)


def _moves(rows: Sequence[Row], *, only_proven: bool = True) -> Iterator[object]:
    """Yield the number of streams, the best known moves, and the moves above them in per cent."""
    proven = [row for row in rows if _is_proven(row)]
    counted = proven if only_proven else rows
    best = [_total(row, HINDSIGHT) for row in counted]
    yield from (len(rows), len(proven), sum(best))
    for course in _COURSES:
        yield _above([_total(row, course) for row in counted], best)


def _is_proven(row: Row) -> bool:
    return _total(row, HINDSIGHT) == int(row["bound"])


def _events(rows: Sequence[Row]) -> Iterator[Sequence[object]]:
    """Yield the moves above hindsight, in per cent, of mixed streams by event."""
    mixed = [row for row in rows if row["mixed"]]
    for event in sorted({event for row in mixed for event in row["events"]} - {"start"}):
        at = [[one == event for one in row["events"]] for row in mixed]
        moves = {
            course: [
                sum(np.array(row["courses"][course])[own].tolist())
                for row, own in zip(mixed, at, strict=True)
            ]
            for course in (HINDSIGHT, *_COURSES)
        }
        best = moves[HINDSIGHT]
        above = (_above(moves[course], best) for course in _COURSES)
        yield event, sum(map(sum, at)), sum(best), *above


def _balance(rows: Sequence[Row]) -> Iterator[Sequence[object]]:
    """Yield the moves with hindsight by tolerance, and the moves above them in per cent."""
    for percent in _TOLERANCES:
        known = [row["balance"][str(percent)] for row in rows]
        best, bound, each = map(list, zip(*known, strict=True))
        proven = sum(one == other for one, other in zip(best, bound, strict=True))
        above = (_above([_total(row, name) for row in rows], best) for name in ASSIGNORS)
        name = f"{percent} % above the minimum"
        yield name, f"{proven} of {len(rows)}", sum(best), sum(bound), _above(each, best), *above


def _total(row: Row, course: str) -> int:
    return int(sum(row["courses"][course]))


def _above(moves: Sequence[int], best: Sequence[int]) -> str:
    return share(np.array(moves) - np.array(best), np.array(best)) if sum(best) else "–"


def _print_table(columns: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    print(f"| {' | '.join(columns)} |")
    print(f"|---|{'--:|' * (len(columns) - 1)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    print()


def main() -> None:
    """Measure streams until the time is over, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=2400.0)
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per trajectory")
    parser.add_argument("--max-size", type=int, default=1_500, help="members x partitions")
    parser.add_argument("--max-balance", type=int, default=500, help="the same, for tolerances")
    parser.add_argument("--again", action="store_true", help="search unproven values again")
    parser.add_argument("--print", action="store_true", help="print the tables of the file")
    options = parser.parse_args()
    end, seed = time.monotonic() + options.seconds, 0
    if options.print or options.again:
        rows = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines()]
    if options.print:
        print_tables(rows)
        return
    if options.again:
        for at, row in enumerate(rows):
            if time.monotonic() < end:
                rows[at] = measure_again(row, limit=options.time_limit)
                lines = [f"{json.dumps(one)}\n" for one in rows]
                options.file.write_text("".join(lines), encoding="utf-8")
        return
    while time.monotonic() < end:
        if size_of(next(iter(EVENT_STREAMS.stream(seed)))) <= options.max_size:
            row = measure(seed, limit=options.time_limit, max_balance=options.max_balance)
            with options.file.open("a", encoding="utf-8") as file:
                print(json.dumps(row), file=file)
        seed += 1


if __name__ == "__main__":
    main()
