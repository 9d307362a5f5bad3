import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from kassay.experiments.cli.commands import study
from kassay.experiments.study.configuration import read_config
from kassay.experiments.study.output_reader import load_summary, read_manifest

GOOD = '{"id": "mine", "topics": {"t": 3}, "members": [{"id": "a", "topics": ["t"]}]}\n'
BAD = '{"id": "bad", "topics": {"t": -1}, "members": []}\n'


@pytest.mark.spark
@pytest.mark.usefixtures("commands_share_spark")
def test_a_study_of_imported_groups_writes_a_report(kassay, tmp_path):
    groups = tmp_path / "groups.jsonl"
    groups.write_text(GOOD + BAD)
    out = tmp_path / "out"
    options = ["--cases", 12, "--assignor", "range", "--assignor", "sticky"]
    study = kassay("study", "--groups", groups, "--output", out, "--master", "local[2]", *options)
    assert study.code == 2, study.err
    (error,) = [line for line in study.err.splitlines() if not line.startswith("studying: ")]
    assert "groups.jsonl:2" in error
    assert "the optimum: imported" in study.out
    assert "sticky" in study.out
    manifest = read_manifest(out)
    assert manifest["configuration"]["imported_groups"] == 1
    assert manifest["rows"]["groups"] == 1 + 5 + 10 + 2 * 2
    report = kassay("report", out)
    assert report.code == 0
    assert report.out.split() == [str(out / "report.html"), str(out / "report.md")]
    assert "1 of them imported" in (out / "report.md").read_text()
    assert (out / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.spark
@pytest.mark.long
def test_the_quick_study_writes_a_report(tmp_path):
    """A new process, because it sets up the homes of Java and Spark."""
    out = tmp_path / "quick"
    file = Path(__file__).parents[3] / "experiments/study/configurations/quick.yaml"
    study = run_process("study", file, "--output", out, "--master", "local[2]")
    assert study.returncode == 0, study.stderr
    assert "the optimum: finite families" in study.stdout
    assert "…" not in study.stdout
    families = load_summary(out).families
    single = families[~families["family"].str.startswith("trajectories")]
    assert single["groups"].sum() == families["proven"].sum() == 421
    assert set(families["family"]) == set(read_config(file.read_text(), "quick").families)
    assert families["errors"].sum() == families["comparison_errors"].sum() == 0
    report = run_process("report", out)
    assert report.returncode == 0, report.stderr
    text = (out / "report.md").read_text()
    assert "421 consumer groups; 421 optima proven, 0 not." in text
    assert "2 event streams with 160 rebalances" in text
    assert len(list((out / "report-data").glob("*.csv"))) > 30


def run_process(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "kassay", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
        cwd=Path(__file__).parents[3],
    )


def test_an_interrupted_study_says_how_it_continues(kassay, tmp_path, monkeypatch):
    @contextmanager
    def interrupted(**_):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(study, "spark_session", interrupted)
    done = kassay("study", "--cases", 1, "--output", tmp_path / "out")
    assert done.code == 130
    assert done.err == "kassay: interrupted: the same command continues the study\n"
