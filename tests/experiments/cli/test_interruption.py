"""Ctrl-C during the search of one group: the best result so far is written."""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kassay.reference.documents.json_codec import group_document
from tests.experiments.cli import interrupted_command
from tests.log_normal_groups import log_normal_group

_LIMIT = ("--time-limit", "300")


@dataclass(frozen=True)
class Interrupted:
    """Result of an interrupted command, and its processor seconds after the signal."""

    code: int
    record: Any
    err: str
    seconds: float


@pytest.fixture
def interrupt(tmp_path):
    """Run a command on a weighted group that needs minutes, and interrupt it."""
    group = tmp_path / "group.json"
    group.write_text(json.dumps(group_document(log_normal_group())))

    def run(command: str, *options: object, signals: int = 1, seconds: float = 1.0) -> Interrupted:
        script = Path(interrupted_command.__file__)
        arguments = [sys.executable, script, signals, seconds, command, group, *options]
        with subprocess.Popen(
            [str(argument) for argument in arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            out, err = process.stdout.read(), process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert "Traceback" not in err, err
        before = float(re.search(r"processor time: ([\d.]+)", err)[1])
        return Interrupted(
            process.returncode,
            json.loads(out) if out else None,
            err,
            usage.ru_utime + usage.ru_stime - before,
        )

    return run


def is_bounded(level: dict) -> bool:
    return 0 <= level["bound"] <= level["value"]


def interrupted_record(done: Interrupted) -> Any:
    assert done.code == 130, done.err
    assert done.seconds < 2.5
    assert done.record["interrupted"] is True
    assert "interrupted" in done.err
    return done.record


def test_an_interrupted_solve_keeps_its_assignment_and_bounds(interrupt):
    record = interrupted_record(interrupt("solve", *_LIMIT))
    assert record["status"] == "feasible"
    assert record["assignment"]
    assert is_bounded(record["imbalance"])
    assert is_bounded(record["movement"])


def test_an_interrupted_plan_is_written_and_says_so(interrupt, tmp_path):
    record = interrupted_record(interrupt("plan", "-o", tmp_path / "plan", *_LIMIT))
    assert record["makespan"]["planned"] < record["makespan"]["current"]
    document = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert document["interrupted"]
    assert document["batches"]
    assert "Interrupted:" in (tmp_path / "plan" / "report.html").read_text()
    assert "Interrupted:" in (tmp_path / "plan" / "ticket.md").read_text()


_INTERRUPTING = """
import os, signal, time
from kassay import Assignment
def assign(group):
    if len(group.members) < 3:
        for _ in range(2):
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(0.2)
        time.sleep(60)
    topic, = group.topics
    return Assignment({"a": [(topic.name, number) for number in range(topic.partitions)]})
"""


def test_agreement_keeps_its_counts_if_it_is_interrupted(tmp_path):
    (tmp_path / "interrupting.py").write_text(_INTERRUPTING)
    members = [{"id": name, "topics": ["t"]} for name in "abc"]
    groups = [{"topics": {"t": 6}, "members": each} for each in (members, members[:2])]
    (tmp_path / "groups.jsonl").write_text("\n".join(map(json.dumps, groups)))
    arguments = ["compare", "groups.jsonl", "--libraries"]
    arguments += ["--assignor", "range", "--assignor", "python:interrupting.py:assign"]
    done = subprocess.run(
        [sys.executable, "-c", "from kassay.experiments.cli import main; main()", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["groups"] for record in records] == [1, 1]
    assert records[1]["agreement"]["other loads"] == 1
    assert "interrupted" in done.stderr


_ENDLESS = "def assign(group):\n    while True:\n        pass\n"


def test_the_second_interrupt_ends_a_search_that_does_not_stop(interrupt, tmp_path):
    (tmp_path / "endless.py").write_text(_ENDLESS)
    name = f"{tmp_path / 'endless.py'}:assign"
    done = interrupt("assign", "--assignor", f"python:{name}", signals=2, seconds=0.0)
    assert done.code == 130
    assert done.seconds < 30  # the assignor uses the processor between the two signals
    assert done.record["error"] == "interrupted before a result was found"
    assert not _processes_with_argument(name)


def _processes_with_argument(text):
    """Return the command lines that contain a text; none on systems without /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has ended
            found.append(path.read_bytes().split(b"\0"))
    return [arguments for arguments in found if text.encode() in arguments]
