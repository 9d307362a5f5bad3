"""Moves above hindsight, and the price of balance, on the event streams of the published study.

``python -m benchmarks.published_streams out/streams.jsonl --seeds 120`` measures streams in the
order of their seeds, and adds a line per stream to the file. ``--study out/trajectories`` takes the
moves of the streams with a proven optimum from the study, ``--again`` searches the values that are
not proven again, and ``--page FILE`` writes the tables to a page.
"""

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

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
from kassay.experiments.study.output_reader import read_manifest
from kassay.experiments.study.schemas import HINDSIGHT, OPTIMUM
from kassay.reference.documents.files import write_text
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import Measure
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Tolerance, default_levels
from kassay.solver.trajectory.trajectory import optimal_trajectory
from tools.insert_published_numbers import markdown_table, replace_numbers

Row = Mapping[str, Any]
Courses = Mapping[str, Sequence[int]]
"""Moves of each rebalance by name of the assignments."""
_RULE = "spread topics"
_COURSES = (FEWEST, _RULE, *ASSIGNORS)
_LABELS = tuple(
    name.removesuffix(" rebalance").replace("fewest moves", "fewest") for name in _COURSES
)
_TOLERANCES = (0, 1, 5, 10)  # per cent of the minimum of the maximum load
_SIZES = ((2, 7), (8, 15), (16, 31), (32, 1000))  # members at the start


def study_courses(directory: Path) -> dict[int, Courses]:
    """Return the moves of the streams of a study with a proven hindsight optimum, by seed."""
    names = {HINDSIGHT: HINDSIGHT, OPTIMUM: FEWEST, **dict(zip(ASSIGNORS, ASSIGNORS, strict=True))}
    found: dict[int, Courses] = {}
    for folder in read_manifest(directory)["folders"]:
        for file in sorted((directory / folder).glob("*.parquet")):
            table = pq.read_table(file, columns=["groups", "rebalances"])
            for case in table.to_pylist():
                courses: dict[str, list[int]] = {name: [] for name in names.values()}
                for row in sorted(case["rebalances"] or (), key=itemgetter("rebalance")):
                    if row["assignor"] in names:
                        courses[names[row["assignor"]]].append(row["moves"] or 0)
                if courses[HINDSIGHT]:
                    found[case["groups"]["seed"]] = courses
    return found


def measure(seed: int, *, limit: float, max_balance: int, known: Courses | None = None) -> Row:
    """Measure one stream: moves per rebalance of each course, and the moves per tolerance.

    ``known`` are the moves of the stream in a study, in which the hindsight optimum is proven.
    """
    steps = list(EVENT_STREAMS.stream(seed))
    groups = _groups(steps)
    if known is None:
        best = optimal_trajectory(groups, limits=SearchLimits(time=limit))
        by_name = {
            name: moves_of(groups, partial(by_assignor, assignor=name)) for name in ASSIGNORS
        }
        known = {HINDSIGHT: best.per_rebalance, FEWEST: best.one_after_the_other, **by_name}
        bound = best.bound
    else:
        bound = sum(known[HINDSIGHT])
    tolerances = _TOLERANCES if size_of(steps[0]) <= max_balance else ()
    return {
        "seed": seed,
        "members": len(steps[0].members),
        "partitions": groups[0].partition_count,
        "mixed": any(len({m.subscription for m in group.members}) > 1 for group in groups),
        "events": [str(step.event) for step in steps],
        "courses": {**known, _RULE: moves_of(groups, partial(by_rule, rule=RULES[_RULE]))},
        "bound": bound,
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


def tables(rows: Sequence[Row]) -> Mapping[str, str]:
    """Return the moves above hindsight by size and by event, and the price of balance."""
    proven = [row for row in rows if _is_proven(row)]
    balanced = [row for row in rows if row["balance"]]
    found = {
        "sizes": f"Seeds 0 to {rows[-1]['seed']}: {len(rows)} streams, {len(proven)} of them with "
        "a proven hindsight optimum:\n\n"
        + _table(("streams", "number", "proven", HINDSIGHT, *_LABELS), _sizes(rows)),
        "events": _table(("event", "rebalances", HINDSIGHT, *_LABELS), _events(proven)),
    }
    if balanced:
        columns = ("maximum load", "proven", HINDSIGHT, "bound", _LABELS[0], *ASSIGNORS)
        found["tolerances"] = _table(columns, _balance(balanced))
    return found


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return markdown_table(columns, [tuple(map(str, row)) for row in rows])


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
        _, bound, each = map(list, zip(*known, strict=True))
        # Moves with a lower tolerance are permitted.
        lower = [str(one) for one in _TOLERANCES if one <= percent]
        best = [min(row["balance"][one][0] for one in lower) for row in rows]
        proven = sum(one == other for one, other in zip(best, bound, strict=True))
        above = (_above([_total(row, name) for row in rows], best) for name in ASSIGNORS)
        name = f"{percent}% above the minimum"
        yield name, f"{proven} of {len(rows)}", sum(best), sum(bound), _above(each, best), *above


def _total(row: Row, course: str) -> int:
    return int(sum(row["courses"][course]))


def _above(moves: Sequence[int], best: Sequence[int]) -> str:
    text = share(np.array(moves) - np.array(best), np.array(best)) if sum(best) else "–"
    return text if len(best) > 1 else text.partition(" (")[0]


def main() -> None:
    """Measure streams until the time is over, or write the tables to a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seeds", type=int, default=120, help="number of streams to look at")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per trajectory")
    parser.add_argument("--max-size", type=int, default=1_500, help="members x partitions")
    parser.add_argument("--max-balance", type=int, default=500, help="the same, for tolerances")
    parser.add_argument(
        "--study", type=Path, help="output of the study, for the moves of proven streams"
    )
    parser.add_argument("--again", action="store_true", help="search unproven values again")
    parser.add_argument("--page", type=Path, help="page for the tables of the file")
    options = parser.parse_args()
    lines = options.file.read_text(encoding="utf-8").splitlines() if options.file.exists() else ()
    rows: dict[int, Row] = {row["seed"]: row for row in map(json.loads, lines)}
    if options.page:
        page = options.page.read_text(encoding="utf-8")
        for place, table in tables(list(rows.values())).items():
            page = replace_numbers(page, table, where=str(options.page), place=place)
        write_text(options.page, page)
        return
    known = study_courses(options.study) if options.study else {}
    end = time.monotonic() + options.seconds
    for seed in rows if options.again else range(options.seeds):
        if time.monotonic() > end:
            break
        old = rows.get(seed)
        if options.again:
            rows[seed] = measure_again(rows[seed], limit=options.time_limit)
        elif old is None or (seed in known and not _is_proven(old)):
            if size_of(next(iter(EVENT_STREAMS.stream(seed)))) > options.max_size:
                continue
            found = measure(
                seed,
                limit=options.time_limit,
                max_balance=0 if old else options.max_balance,
                known=known.get(seed),
            )
            rows[seed] = {**found, "balance": old["balance"]} if old else found
        text = "".join(f"{json.dumps(rows[one])}\n" for one in sorted(rows))
        write_text(options.file, text)


if __name__ == "__main__":
    main()
