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
        {"id": "c0", "topics": ["orders", "audit"], "owned": {"orders": [0, 1, 2]}},
        {"id": "c1", "topics": ["orders"]},
        {"id": "c2", "topics": ["audit"]},
    ],
}


def timings() -> Iterator[Timing]:
    """Measure the CPU time of kassay commands, and of the imports that they need."""
    kassay = ("-m", "kassay")
    with tempfile.TemporaryDirectory() as directory:
        group = Path(directory, "group.json")
        group.write_text(json.dumps(_GROUP), encoding="utf-8")
        plan = ("plan", str(group), "-o", str(Path(directory, "plan")))
        for case, arguments in {
            "import numpy": ("-c", "import numpy"),
            "import typer": ("-c", "import typer"),
            "kassay --help": (*kassay, "--help"),
            "kassay solve": (*kassay, "solve", str(group)),
            "kassay compare": (*kassay, "compare", str(group)),
            "kassay plan": (*kassay, *plan),
        }.items():
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
