"""Run all contestants (solvers) of the few-moves benchmark, and print the results as tables.

``python -m benchmarks.few_moves --seconds 60`` runs the published instances. ``--results FILE``
appends each result to a file with one JSON object per line. ``--write FOLDER`` writes the group
document of each instance, with its maximum load as part of the file name.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.few_moves.check import check
from benchmarks.few_moves.contestants import CONTESTANTS
from benchmarks.few_moves.instances import Instance, instance, published_names
from kassay.reference.documents.files import write_text
from kassay.reference.documents.json_codec import assignment_document, group_document

_RATIOS = (1.0, 1.03, 1.1, 1.25, 1.5, 2.0)


@dataclass(frozen=True, slots=True)
class Result:
    """Checked result of one contestant (solver) on one benchmark instance."""

    instance: str
    contestant: str
    max_load: int | None
    moves: int | None  # None if the result is not a solution
    bound: int | None
    seconds: float
    processor_seconds: float
    note: str

    def row(self) -> str:
        """Format the result as a row of a Markdown table."""
        cells = (self.instance, self.contestant, self.moves, self.bound)
        shown = " | ".join("–" if cell is None else str(cell) for cell in cells)
        times = f"{self.seconds:.1f} | {self.processor_seconds:.1f}"
        return f"| {shown} | {times} | {self.note} |"


def run(one: Instance, contestant: str, seconds: float) -> Result:
    """Run one contestant (solver) on one benchmark instance, and check its assignment."""
    start, start_processor = time.perf_counter(), _processor_seconds()
    entry = CONTESTANTS[contestant](one, seconds)
    used = time.perf_counter() - start, _processor_seconds() - start_processor
    if entry.assignment is None:
        return Result(one.name, contestant, None, None, entry.bound, *used, entry.note)
    load, moves, reasons = check(
        group_document(one.group), assignment_document(entry.assignment), one.max_load
    )
    valid = moves if not reasons else None
    return Result(one.name, contestant, load, valid, entry.bound, *used, "; ".join(reasons[:1]))


def _processor_seconds() -> float:
    """Return the processor time of this process and of its finished child processes."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def profile(results: Sequence[Result], ratios: Sequence[float] = _RATIOS) -> dict[str, list[float]]:
    """Return the performance profile of each contestant (solver).

    The profile is the share of instances with moves within each ratio of the fewest moves.

    Examples
    --------
    >>> rows = [
    ...     Result("a", name, 1, moves, None, 0.0, 0.0, "") for name, moves in (("x", 4), ("y", 5))
    ... ]
    >>> profile(rows)
    {'x': [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 'y': [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]}
    """
    best: dict[str, int] = {}
    for result in results:
        if result.moves is not None:
            best[result.instance] = min(result.moves, best.get(result.instance, result.moves))
    instances = list(dict.fromkeys(result.instance for result in results))
    table: dict[str, list[float]] = {}
    for name in dict.fromkeys(result.contestant for result in results):
        own = {r.instance: r.moves for r in results if r.contestant == name and r.moves is not None}
        table[name] = [
            sum(one in own and own[one] <= ratio * best[one] for one in instances) / len(instances)
            for ratio in ratios
        ]
    return table


def table_of(results: Sequence[Result]) -> list[str]:
    """Return a Markdown table with a row per instance: moves of each contestant, best bound.

    Examples
    --------
    >>> rows = [Result("a", "x", 1, 4, 3, 0.0, 0.0, ""), Result("a", "y", 1, None, 2, 0.0, 0.0, "")]
    >>> for line in table_of(rows):
    ...     print(line)
    | instance | x | y | best bound |
    |---|--:|--:|--:|
    | a | 4 (3) | – (2) | 3 |
    """
    names = list(dict.fromkeys(result.contestant for result in results))
    lines = [
        "| " + " | ".join(["instance", *names, "best bound"]) + " |",
        "|---|" + "--:|" * (len(names) + 1),
    ]
    for one in dict.fromkeys(result.instance for result in results):
        own = {result.contestant: result for result in results if result.instance == one}
        bounds = [result.bound for result in own.values() if result.bound is not None]
        cells = [_cell(own[name]) if name in own else "" for name in names]
        lines.append("| " + " | ".join([one, *cells, str(max(bounds, default="–"))]) + " |")
    return lines


def _cell(result: Result) -> str:
    moves = "–" if result.moves is None else str(result.moves)
    return moves if result.bound is None else f"{moves} ({result.bound})"


def _print_tables(results: Sequence[Result]) -> None:
    print("", *table_of(results), sep="\n")
    print("\n| contestant | " + " | ".join(f"≤ {ratio:g}" for ratio in _RATIOS) + " |")
    print("|---|" + "--:|" * len(_RATIOS))
    for name, shares in profile(results).items():
        print(f"| {name} | " + " | ".join(f"{share:.0%}" for share in shares) + " |")
    gaps = [
        (result.moves - result.bound) / result.moves if result.moves else 0.0
        for result in results
        if result.contestant == "kassay" and result.moves is not None and result.bound is not None
    ]
    if gaps:
        print(f"\nmean proven gap of kassay: {sum(gaps) / len(gaps):.1%}")


def main() -> None:
    """Run the few-moves benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_moves", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="limit per run (default 60)")
    parser.add_argument("--contestant", action="append", choices=list(CONTESTANTS))
    parser.add_argument("--instance", action="append", help="instance name (default published)")
    parser.add_argument("--results", type=Path, help="append results to this file of JSON lines")
    parser.add_argument("--write", type=Path, help="write the instances to this folder and stop")
    options = parser.parse_args()
    instances = [instance(name) for name in options.instance or published_names()]
    if options.write is not None:
        options.write.mkdir(parents=True, exist_ok=True)
        for one in instances:
            path = options.write / f"{one.name.replace('/', '_')}_{one.max_load}.json"
            write_text(path, json.dumps(group_document(one.group)) + "\n")
        return
    results = []
    print("| instance | contestant | moves | bound | seconds | processor seconds | note |")
    print("|---|---|--:|--:|--:|--:|---|")
    for one in instances:
        for contestant in options.contestant or CONTESTANTS:
            results.append(run(one, contestant, options.seconds))
            print(results[-1].row(), flush=True)
            if options.results is not None:
                with options.results.open("a") as stream:
                    stream.write(json.dumps(asdict(results[-1])) + "\n")
    _print_tables(results)


if __name__ == "__main__":
    sys.exit(main())
