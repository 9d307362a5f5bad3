"""Long comparison of one port with Kafka's class, which continues after differences.

    python -m tests.conformance.long_comparison sticky 100000 --mismatches mismatches.jsonl

Each difference is shrunk and written as one line of JSON: the group and both results.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.groups import histories
from tests.conformance.port_comparison import PortComparison, compare_port, shrink_mismatch
from tests.conformance.upstream import NAMES

_REPORT_INTERVAL = 5_000


def comparisons(name: str, number: int, *, first: int = 0) -> Iterator[PortComparison]:
    """Compare the results on a number of generated groups, from history ``first`` on."""
    groups = histories(name, first=first)
    group = next(groups)
    for _ in range(number):
        comparison = compare_port(group, name)
        yield comparison
        group = groups.send(comparison.real.lists)


def main() -> int:
    """Run a comparison from the command line; the exit code is 1 after a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("assignor", choices=NAMES)
    parser.add_argument("groups", type=int)
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    parser.add_argument("--mismatches", type=Path, help="output file for differences")
    parser.add_argument(
        "--max-differences", type=int, default=20, help="maximum number of differences"
    )
    arguments = parser.parse_args()
    kinds: Counter[str] = Counter()
    started = time.perf_counter()
    for comparison in comparisons(arguments.assignor, arguments.groups, first=arguments.first):
        kinds[_kind(comparison)] += 1
        done = sum(kinds.values())
        if not comparison.agree and arguments.mismatches is not None:
            _append(arguments.mismatches, shrink_mismatch(comparison.group, arguments.assignor))
        if (
            done % _REPORT_INTERVAL == 0
            or done == arguments.groups
            or kinds["different"] >= arguments.max_differences
        ):
            rate = done / (time.perf_counter() - started)
            line = f"{arguments.assignor}: {done} groups, {rate:.0f} groups/s, {dict(kinds)}"
            print(line, flush=True)  # noqa: T201
        if kinds["different"] >= arguments.max_differences:
            break
    return 1 if kinds["different"] else 0


def _kind(comparison: PortComparison) -> str:
    if not comparison.agree:
        return "different"
    if not comparison.real.terminated:
        return "nonterminating"
    return comparison.real.failed or "assigned"


def _append(path: Path, comparison: PortComparison) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(comparison.document() + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
