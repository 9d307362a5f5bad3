"""Assignors of libraries: names, the protocol of drivers, and failures as results."""

import sys
import time
from dataclasses import replace

import pytest

from kassay.experiments.implementations import client_libraries, run_assignor
from kassay.experiments.implementations.client_libraries import (
    libraries,
    parse_library_assignor,
    parse_library_version,
)
from kassay.experiments.implementations.run_assignor import (
    Ending,
    NotReadyError,
    close_processes,
    run,
    run_until_stable,
)
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from kassay.reference.model.errors import InputError, RunError
from tests.stored_cases import stored_cases

GROUP = NAMED_GROUPS["A"].group
ASSIGNED = '{"c0": [["t1", 0]], "c1": [["t1", 1]], "c2": [["t0", 0]]}'
_DRIVER = """
import json, os, sys, time
{before}
print("ready", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    assert request["assignor"] == "sticky" and request["group"]["topics"]
    {answer}
    print({assigned!r}, flush=True)
"""


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Replace the driver of the Java client by a Python program."""

    def write(answer="pass", before="pass", start_seconds=20.0):
        script = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
        script.write_text(_DRIVER.format(before=before, answer=answer, assigned=ASSIGNED))
        monkeypatch.setattr(run_assignor, "driver_command", lambda _: (sys.executable, str(script)))
        monkeypatch.setattr(run_assignor, "_START_SECONDS", start_seconds)
        return "kafka-clients@2.4.0@2s:sticky"

    yield write
    close_processes()


def test_a_complete_name_contains_version_and_time_limit():
    newest = libraries()["kafka-clients"].versions[0]
    parsed = parse_library_assignor("kafka-clients:sticky")
    assert str(parsed) == f"kafka-clients@{newest}:sticky"
    limited = replace(parsed, seconds=2.5)
    assert str(limited) == f"kafka-clients@{newest}@2.5s:sticky"
    assert parse_library_assignor(str(limited)) == limited


@pytest.mark.parametrize(("name", "expected"), stored_cases("invalid_library_names"))
def test_unknown_or_invalid_parts_of_a_name_are_input_errors(name, expected):
    with pytest.raises(InputError, match=expected.replace("(", r"\(")):
        parse_library_assignor(name)


def test_a_library_that_is_not_installed_is_an_input_error(tmp_path, monkeypatch):
    monkeypatch.setenv("KASSAY_IMPLEMENTATIONS", str(tmp_path))
    client_libraries.driver_command.cache_clear()
    with pytest.raises(InputError, match=r"run: kassay libraries install kafka-clients@2\.4\.0"):
        run(GROUP, "kafka-clients@2.4.0:sticky")


def test_a_failed_installation_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("KASSAY_IMPLEMENTATIONS", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RunError, match="PATH does not contain the required program 'mvn'"):
        client_libraries.install(*parse_library_version("kafka-clients@2.4.0"))
    assert list(tmp_path.iterdir()) == []


def test_an_installation_of_another_driver_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("KASSAY_IMPLEMENTATIONS", str(tmp_path))
    library, version = parse_library_version("kafka-clients@2.4.0")
    fake = replace(client_libraries.runtimes()["jvm"], files={"jar": ""}, steps=[])
    monkeypatch.setattr(client_libraries, "runtimes", lambda: {"jvm": fake})
    directory = client_libraries.install(library, version)
    assert client_libraries.is_installed(library, version)
    assert list(client_libraries.installed_versions()) == [(library, version)]
    (directory / "driver.sha256").write_text("other")
    assert not client_libraries.is_installed(library, version)
    text = client_libraries.how_to_install(library, version)
    assert text.startswith("kafka-clients@2.4.0 was installed by another version of kassay in ")


def test_a_driver_answers_with_an_assignment(driver):
    name = driver()
    for _ in range(2):
        assert run(GROUP, name).assignment.counts() == {"c0": 1, "c1": 1, "c2": 1}


def test_a_hang_is_reported_as_non_termination(driver):
    result = run_until_stable(GROUP, driver(answer="time.sleep(60)"))
    assert (result.ending, result.detail) == (
        Ending.NONTERMINATING,
        "no assignment within 2 seconds",
    )


@pytest.mark.parametrize(("answer", "expected"), stored_cases("crashes_of_libraries"))
def test_crashes_and_exceptions_are_results(driver, answer, expected):
    result = run_until_stable(GROUP, driver(answer=answer))
    assert result.ending is Ending.FAILED
    assert expected in result.detail


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("sys.exit('no jar')", "is not ready: .*exit code 1.*: no jar"),
        ("time.sleep(60)", "is not ready: .*within 1 seconds"),
    ],
)
def test_a_driver_that_does_not_start_is_an_error_and_no_result(driver, before, expected):
    name = driver(before=before, start_seconds=1.0 if "sleep" in before else 20.0)
    begin = time.monotonic()
    with pytest.raises(NotReadyError, match=expected):
        run(GROUP, name)
    assert time.monotonic() - begin < 30
