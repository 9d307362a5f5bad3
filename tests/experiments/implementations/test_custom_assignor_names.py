"""Custom assignors: every failure is a result, and the next group is answered."""

import sys
import time
from pathlib import Path

import pytest

from kassay import Group, InputError
from kassay.experiments.implementations.assignor_names import (
    complete_name,
    parse_custom_assignor,
    shown_name,
)
from kassay.experiments.implementations.run_assignor import (
    DEPENDS_ON_THE_RUN,
    AssignorProcess,
    Ending,
    NoAnswerError,
    run_until_stable,
)
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from tests.stored_cases import stored_cases

GROUP = NAMED_GROUPS["A"].group
GOOD = '{"c0": [["t1", 0]], "c1": [["t1", 1]], "c2": [["t0", 0]]}'


def command(tmp_path, body, *, seconds=20.0):
    """Name an assignor whose process runs ``body`` for each line."""
    script = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
    script.write_text(f"import os, sys, time\nGOOD = {GOOD!r}\nfor line in sys.stdin:\n{body}\n")
    return f"cmd@{seconds:g}s:{sys.executable} {script}"


def function(tmp_path, body, *, name="assign"):
    module = tmp_path / "mine.py"
    module.write_text(f"import os\ndef assign(group):\n    {body}\n")
    return f"python@20s:{module}:{name}"


def test_a_valid_answer_is_a_stable_result(tmp_path):
    result = run_until_stable(GROUP, command(tmp_path, "    print(GOOD, flush=True)"))
    assert result.ending is Ending.OK
    assert result.assignment.counts() == {"c0": 1, "c1": 1, "c2": 1}


@pytest.mark.parametrize("group", [entry.group for entry in NAMED_GROUPS.values()])
@pytest.mark.parametrize("assignor", ["sticky", "uniform"])
def test_a_port_gives_the_same_result_as_a_user_defined_assignor(group, assignor):
    function = {"sticky": "client.sticky:assign", "uniform": "broker:assign_uniform"}[assignor]
    user_defined = f"python@60s:kassay.reference.assignors.{function}"
    external, internal = run_until_stable(group, user_defined), run_until_stable(group, assignor)
    assert (external.ending, external.assignment) == (internal.ending, internal.assignment)
    assert external.detail == internal.detail


@pytest.mark.parametrize(("body", "expected"), stored_cases("invalid_assignor_output"))
def test_invalid_output_and_crashes_fail_with_a_description(tmp_path, body, expected):
    result = run_until_stable(GROUP, command(tmp_path, body))
    assert result.ending is Ending.FAILED
    assert expected in result.detail


@pytest.mark.parametrize(("answer", "expected"), stored_cases("invalid_assignments_of_processes"))
def test_an_invalid_assignment_is_reported_with_its_violation(tmp_path, answer, expected):
    result = run_until_stable(GROUP, command(tmp_path, f"    print({answer!r}, flush=True)"))
    assert result.ending in {Ending.INVALID, Ending.FAILED}
    assert expected in result.detail


def test_a_process_over_the_time_limit_is_killed_with_its_children(tmp_path):
    body = (
        f"    import subprocess; child = subprocess.Popen([{sys.executable!r}, '-c', "
        "'import time; time.sleep(600)'])\n"
        f"    open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "    time.sleep(600)"
    )
    result = run_until_stable(GROUP, command(tmp_path, body, seconds=3.0))
    assert (result.ending, result.detail) == (
        Ending.FAILED,
        "the process wrote no assignment within 3 seconds",
    )
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        if not _is_running(child):
            return
        time.sleep(0.1)
    pytest.fail("the child process still runs")


def _is_running(pid):
    try:
        with Path(f"/proc/{pid}/stat").open() as stat:
            return stat.read().split(")")[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_new_process_answers_the_group_after_a_crash(tmp_path):
    mine = command(tmp_path, "    os.abort() if 'crash' in line else print(GOOD, flush=True)")
    bad = Group(topics=GROUP.topics, members=GROUP.members, id="crash")
    endings = [run_until_stable(group, mine).ending for group in (GROUP, bad, GROUP)]
    assert endings == [Ending.OK, Ending.FAILED, Ending.OK]


def test_lines_longer_than_the_pipe_buffer_pass_in_both_directions():
    process = AssignorProcess((sys.executable, "-uc", "while True: print(input())"))
    try:
        assert process.request("x" * 3_000_000, seconds=30) == "x" * 3_000_000 + "\n"
        with pytest.raises(NoAnswerError, match="wrote no assignment within"):
            AssignorProcess(("sleep", "60")).request("x" * 3_000_000, seconds=0.5)
    finally:
        process.close()


def test_a_callable_may_print_raise_or_exit(tmp_path):
    good = '{"c0": [("t1", 0)], "c1": [("t1", 1)], "c2": [("t0", 0)]}'
    chatty = function(tmp_path, f"print('hello'); return {good}")
    assert run_until_stable(GROUP, chatty).assignment.counts() == {"c0": 1, "c1": 1, "c2": 1}
    for place, (body, expected) in enumerate(
        [
            ("return 1 / 0", "ZeroDivisionError: division by zero"),
            ("return 7", "the function must return a mapping, got int"),
            ("return {'c0': 7}", "TypeError"),
            ("os._exit(3)", "the process ended without writing an assignment (exit code 3)"),
        ]
    ):
        folder = tmp_path / str(place)
        folder.mkdir()
        result = run_until_stable(GROUP, function(folder, body))
        assert result.ending is Ending.FAILED
        assert expected in result.detail


def test_an_answer_that_depends_on_the_run_is_a_failure(tmp_path):
    swapped = GOOD.replace('"c0"', '"x"').replace('"c1"', '"c0"').replace('"x"', '"c1"')
    body = f"    print(GOOD, flush=True)\n    GOOD = ({GOOD!r}, {swapped!r})[GOOD == {GOOD!r}]"
    result = run_until_stable(GROUP, command(tmp_path, body))
    assert (result.ending, result.detail) == (Ending.FAILED, DEPENDS_ON_THE_RUN)


def test_complete_names_have_absolute_paths_and_shown_names_have_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.py", "run.sh"):
        Path(name).write_text("#!/bin/sh\n")
        Path(name).chmod(0o755)
    complete = {
        "python:mine.py:f": f"python:{tmp_path}/mine.py:f",
        "python@2s:mine:f": f"python@2s:{tmp_path}/mine.py:f",
        "a=cmd:./run.sh --level=2 mine.py": f"a=cmd:{tmp_path}/run.sh --level=2 {tmp_path}/mine.py",
        "python:json.tool:main": "python:json.tool:main",
    }
    assert {name: complete_name(name) for name in complete} == complete
    assert [shown_name(name) for name in complete.values()] == [
        "python:mine.py:f",
        "python@2s:mine.py:f",
        "a",
        "python:json.tool:main",
    ]


@pytest.mark.parametrize("bad", ["cmd:", "cmd:'", "python:os"])
def test_invalid_commands_and_callables_are_refused(bad):
    with pytest.raises(InputError):
        parse_custom_assignor(bad)
