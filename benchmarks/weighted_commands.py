"""CPU time of whole ``kassay`` commands on typical weighted groups, and the proof of their result.

Run it with ``python -m benchmarks.weighted_commands [COMMAND...]``; it measures the recorded group
and 20 seeded groups with up to 400 partitions. `make bench` measures the first of them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.name_arguments import parse_with_names
from benchmarks.timing import Timing
from benchmarks.typical_groups import LIVE_RATES, random_groups
from kassay.reference.documents.json_codec import group_document

_SEEDED, _SEEDED_IN_BENCH = 20, 4
"""Number of seeded groups, beside the group with recorded rates."""
_Record = dict[str, Any]


def _target(group: _Record) -> int:
    """Return a maximum load that some members more than the current number reach."""
    weights = [weight for topic in group["topics"].values() for weight in topic["weights"]]
    return max(*weights, sum(weights) * 9 // (10 * len(group["members"])))


def _is_compared(record: _Record) -> bool:
    optimum, entry = record["optimum"], record["comparisons"][0]
    return "optimum" in entry[optimum["measure"]] and "unnecessary_moves" in entry


def _is_plan_proven(record: _Record) -> bool:
    """Return whether maximum load and moves are proven; the sum of squares need not be."""
    return "not proven" not in (record["proof"][level] for level in ("imbalance", "movement"))


class _Command(NamedTuple):
    """Options of a command, and the function that reports whether its result is proven."""

    options: Callable[[_Record], Sequence[str]]
    is_proven: Callable[[_Record], bool]


COMMANDS = {
    "scale": _Command(
        lambda group: ("--maximum-load", str(_target(group))),
        lambda record: record["needed"]["bound"] == record["needed"]["optimum"],
    ),
    "forecast": _Command(
        lambda _: ("--members", "+0..+2"),
        lambda record: all(
            one["status"] == "optimal" for one in record["forecasts"] if "status" in one
        ),
    ),
    "compare": _Command(lambda _: ("--assignor", "range"), _is_compared),
    "survey": _Command(
        lambda _: ("--format", "jsonl"),
        lambda record: record["moves"]["value"] == record["moves"]["bound"],
    ),
    "plan": _Command(lambda _: ("--format", "jsonl", "-o", "plan"), _is_plan_proven),
}


@dataclass(frozen=True, slots=True)
class CommandRun:
    """CPU seconds and wall-clock seconds of a command on one group, and whether it is proven."""

    command: str
    group: str
    processor: float
    seconds: float
    proven: bool

    def __str__(self) -> str:
        """Format the result as a row of a Markdown table."""
        proven = "proven" if self.proven else "not proven"
        return (
            f"| {self.command} | {self.group} | {self.processor:.1f} | {self.seconds:.1f} "
            f"| {proven} |"
        )


def run(command: str, group: _Record) -> CommandRun:
    """Run a command with its default limits on one group, in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "group.json").write_text(json.dumps(group), encoding="utf-8")
        options = COMMANDS[command].options(group)
        arguments = (sys.executable, "-m", "kassay", command, "group.json", *options)
        before, start = os.times(), time.perf_counter()
        done = subprocess.run(arguments, check=True, capture_output=True, cwd=directory)
        seconds, after = time.perf_counter() - start, os.times()
    processor = (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )
    proven = COMMANDS[command].is_proven(json.loads(done.stdout.splitlines()[0]))
    return CommandRun(command, group["id"], processor, seconds, proven)


def runs(commands: Iterable[str], seeded: int) -> Iterator[CommandRun]:
    """Run commands on the group with recorded rates, and on a number of seeded groups."""
    groups: list[_Record] = [json.loads(LIVE_RATES.read_text(encoding="utf-8"))]
    groups += map(group_document, random_groups(seeded))
    for command in commands:
        for group in groups:
            yield run(command, group)


def timings() -> Iterator[Timing]:
    """Measure all commands on the first groups."""
    for one in runs(COMMANDS, _SEEDED_IN_BENCH):
        yield Timing(
            benchmark="commands",
            case=f"kassay {one.command}, {one.group}",
            seconds=one.processor,
            note=f"processor time; {one.seconds:.1f} s, {'' if one.proven else 'not '}proven",
        )


def main() -> None:
    """Run the named commands on all groups, by default all commands; print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = parse_with_names(parser, "command", COMMANDS).names
    print("| command | group | CPU seconds | seconds | result |\n|---|---|---:|---:|---|")
    for one in runs(names, _SEEDED):
        print(one, flush=True)


if __name__ == "__main__":
    main()
