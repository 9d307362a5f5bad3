"""A long comparison of one port with the real class, which goes on past what differs.

    python -m tests.conformance.soak sticky 100000 --mismatches mismatches.jsonl

Each difference is shrunk and written as one line of JSON: the group and both answers.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.check import Checked, check, smallest_disagreement
from tests.conformance.groups import histories
from tests.conformance.upstream import NAMES

_EVERY = 5_000


def checked(name: str, number: int, *, first: int = 0) -> Iterator[Checked]:
    """Yield both answers on fresh groups.

    Parameters
    ----------
    name
        The assignor.
    number
        How many groups.
    first
        Number of the first history; each number has its own groups.
    """
    groups = histories(name, first=first)
    group = next(groups)
    for _ in range(number):
        both = check(group, name)
        yield both
        group = groups.send(both.real.lists)


def main() -> int:
    """Run a soak from the command line; the exit code is 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("assignor", choices=NAMES)
    parser.add_argument("groups", type=int)
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    parser.add_argument("--mismatches", type=Path, help="file for what differs")
    parser.add_argument("--most", type=int, default=20, help="stop after so many differences")
    asked = parser.parse_args()
    kinds: Counter[str] = Counter()
    started = time.perf_counter()
    for both in checked(asked.assignor, asked.groups, first=asked.first):
        kinds[_kind(both)] += 1
        done = sum(kinds.values())
        if not both.agree and asked.mismatches is not None:
            _append(asked.mismatches, smallest_disagreement(both.group, asked.assignor))
        if done % _EVERY == 0 or done == asked.groups or kinds["different"] >= asked.most:
            rate = done / (time.perf_counter() - started)
            line = f"{asked.assignor}: {done} groups, {rate:.0f} a second, {dict(kinds)}"
            print(line, flush=True)  # noqa: T201
        if kinds["different"] >= asked.most:
            break
    return 1 if kinds["different"] else 0


def _kind(both: Checked) -> str:
    if not both.agree:
        return "different"
    if not both.real.terminated:
        return "endless"
    return both.real.failed or "assigned"


def _append(path: Path, both: Checked) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(both.document() + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
