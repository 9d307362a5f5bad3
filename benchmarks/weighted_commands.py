"""CPU time of whole ``kassay`` commands on typical weighted groups, and the proof of their result.

Run it with ``python -m benchmarks.weighted_commands [COMMAND...]``; it measures the recorded group
and 20 generated groups with 60 to 400 partitions. `make bench` measures the first of them.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.timing import KASSAY, Timing

RECORDED_GROUP = Path(__file__).with_name("live_rates.json")
"""Group of a live cluster, with rates as weights: 400 partitions and 12 members."""
_GENERATED, _GENERATED_IN_BENCH = 20, 4
_Record = dict[str, Any]


def typical_group(seed: int) -> _Record:
    """Build the document of a group with Zipf or log-normal weights, which members own in turn.

    Examples
    --------
    >>> group = typical_group(0)
    >>> group["id"], group["topics"]["t"]["weights"][:3]
    ('zipf-257x16', [43907, 43763, 46218])
    """
    rng = random.Random(seed)
    partitions, members = rng.randint(60, 400), rng.randint(10, 20)
    if seed % 2:
        name, weights = "log-normal", [rng.lognormvariate(0, 1) for _ in range(partitions)]
        weights = [10_000 * weight for weight in weights]
    else:
        name, exponent = "zipf", rng.choice([0.6, 0.8, 1.0])
        weights = [1_000_000 / rank**exponent for rank in range(1, partitions + 1)]
    rng.shuffle(weights)
    return {
        "id": f"{name}-{partitions}x{members}",
        "topics": {"t": {"partitions": partitions, "weights": [max(1, round(w)) for w in weights]}},
        "members": [
            {
                "id": f"c{member:02}",
                "topics": ["t"],
                "owned": {"t": list(range(member, partitions, members))},
            }
            for member in range(members)
        ],
    }


def _target(group: _Record) -> int:
    """Return a maximum load that some members more than the current number reach."""
    weights = [weight for topic in group["topics"].values() for weight in topic["weights"]]
    return max(*weights, sum(weights) * 9 // (10 * len(group["members"])))


def _is_compared(record: _Record) -> bool:
    optimum, entry = record["optimum"], record["comparisons"][0]
    return "optimum" in entry[optimum["measure"]] and "unnecessary_moves" in entry


class _Command(NamedTuple):
    """Options of a command, and the function that reports whether its result is proven."""

    options: Callable[[_Record], Sequence[str]]
    is_proven: Callable[[_Record], bool]


COMMANDS = {
    "members": _Command(
        lambda group: ("--makespan", str(_target(group))), lambda record: record["proven"]
    ),
    "what-if": _Command(
        lambda _: ("--members", "+0..+2"),
        lambda record: all(one["status"] == "optimal" for one in record["scenarios"][1:]),
    ),
    "ladder": _Command(lambda _: (), lambda record: all(one["proven"] for one in record["steps"])),
    "compare": _Command(lambda _: ("--assignor", "range"), _is_compared),
    "survey": _Command(
        lambda _: ("--format", "jsonl"),
        lambda record: record["moves"]["value"] == record["moves"]["bound"],
    ),
    "explain": _Command(lambda _: (), lambda record: record["optimal"] is not None),
    "plan": _Command(
        lambda _: ("--format", "jsonl", "-o", "plan"), lambda record: record["status"] == "optimal"
    ),
    "frontier": _Command(
        lambda _: (), lambda record: all(point["proven"] for point in record["points"])
    ),
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


def runs(commands: Iterable[str], generated: int) -> Iterator[CommandRun]:
    """Run commands on the recorded group, and on a number of generated groups."""
    groups = [json.loads(RECORDED_GROUP.read_text(encoding="utf-8"))]
    groups += map(typical_group, range(generated))
    for command in commands:
        for group in groups:
            yield run(command, group)


def timings() -> Iterator[Timing]:
    """Measure all commands on the first groups."""
    for one in runs(COMMANDS, _GENERATED_IN_BENCH):
        yield Timing(
            benchmark="commands",
            case=f"kassay {one.command}, {one.group}",
            implementation=KASSAY,
            seconds=one.processor,
            note=f"processor time; {one.seconds:.1f} s, {'' if one.proven else 'not '}proven",
        )


def main(names: list[str]) -> None:
    """Run the named commands on all groups, by default all commands; print a Markdown table."""
    print("| command | group | CPU seconds | seconds | result |\n|---|---|---:|---:|---|")
    for one in runs(names or COMMANDS, _GENERATED):
        print(one, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
