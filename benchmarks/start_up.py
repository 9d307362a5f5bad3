"""CPU time of complete ``kassay`` commands on a small group, and of their imports."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.timing import Timing

_REPETITIONS = 5
_GROUP = {
    "id": "small",
    "topics": {"orders": 6, "audit": 3},
    "members": [
        {"id": "c0", "topics": ["orders", "audit"], "owned": {"orders": [0, 1, 2], "audit": [0]}},
        {"id": "c1", "topics": ["orders"], "owned": {"orders": [3]}},
        {"id": "c2", "topics": ["audit"]},
    ],
}
_WEIGHTED_TOPICS = {
    "orders": {"partitions": 6, "weights": [9, 7, 5, 4, 2, 1]},
    "audit": {"partitions": 3, "weights": [3, 3, 2]},
}


def timings() -> Iterator[Timing]:
    """Measure the CPU time of kassay commands, and of the imports that they need."""
    kassay = ("-m", "kassay")
    with tempfile.TemporaryDirectory() as directory:
        group, weighted = Path(directory, "group.json"), Path(directory, "weighted.json")
        group.write_text(json.dumps(_GROUP), encoding="utf-8")
        weighted.write_text(json.dumps(_GROUP | {"topics": _WEIGHTED_TOPICS}), encoding="utf-8")
        output = ("-o", str(Path(directory, "plan")))
        cases = {
            "import numpy": ("-c", "import numpy"),
            "import typer": ("-c", "import typer"),
            "kassay --help": (*kassay, "--help"),
        }
        for name, file in (("", group), (", weighted", weighted)):
            cases |= {
                f"kassay solve{name}": (*kassay, "solve", str(file)),
                f"kassay compare{name}": (*kassay, "compare", str(file)),
                f"kassay plan{name}": (*kassay, "plan", str(file), *output),
            }
        for case, arguments in cases.items():
            yield Timing(
                benchmark="start-up",
                case=case,
                implementation="Python",
                seconds=min(_processor_seconds(arguments) for _ in range(_REPETITIONS)),
                note="processor time of the process",
            )


def _processor_seconds(arguments: Sequence[str]) -> float:
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = os.times()
    return (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )
