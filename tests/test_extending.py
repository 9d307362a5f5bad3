"""Tests of docs/extending.md: its changes are applied to a copy of the packages and run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
FOLDERS = ("reference", "solver", "experiments")


def section(title: str) -> str:
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def command(title: str) -> str:
    """Return the last indented command of a section."""
    return re.findall(r"^    ((?:kassay|echo) .*)$", section(title), re.MULTILINE)[-1]


def apply_diff(diff: str, root: Path) -> None:
    """Apply a unified diff without line numbers; each hunk must match exactly once."""
    head, *hunks = diff.split("@@\n")
    path = root / re.search(r"^\+\+\+ b/(.+)$", head, re.MULTILINE)[1]
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for hunk in hunks:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        if old:
            assert text.count(old) == 1, f"{path.name} does not contain once:\n{old}"
            text = text.replace(old, new)
        else:
            text += new
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def extend(tmp_path: Path):
    """Return a function that applies a section and runs a command with the changed packages."""
    for folder in (*FOLDERS, "kassay"):
        skipped = shutil.ignore_patterns("__pycache__", "notebooks")
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=skipped)
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    def run(title: str, line: str) -> list[Any]:
        diffs = re.findall(r"^```diff\n(.*?)^```", section(title), re.MULTILINE | re.DOTALL)
        assert diffs
        for diff in diffs:
            apply_diff(diff, tmp_path)
        done = subprocess.run(
            re.sub(r"\bkassay (?=[a-z])", f"{sys.executable} -m kassay ", line, count=1),
            shell=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_a_new_assignor_is_compared_with_the_optimum(extend):
    rows = extend("Add an assignor", command("Add an assignor"))
    comparisons = [comparison for row in rows for comparison in row["comparisons"]]
    assert [comparison["assignor"] for comparison in comparisons] == ["first-subscriber"] * 5
    assert {comparison["ending"] for comparison in comparisons} == {"ok"}


def test_a_new_source_is_imported(extend):
    [document] = extend("Add a source of groups", command("Add a source of groups"))
    assert document["id"] == "g"
    assert document["topics"] == {"t": {"partitions": 1, "weights": [7]}}
    assert document["members"][0]["owned"] == [["t", 0]]


def test_a_new_level_is_minimised(extend):
    [solution] = extend("Add a level", command("Add a level"))
    assert solution["status"] == "optimal"
    assert solution["topics_consumed"] == {"value": 2, "bound": 2}


def test_a_new_family_is_studied(extend):
    # Without Spark: the command of the page evaluates the same cases on workers.
    script = (
        "from kassay.experiments.study.case import family_cases\n"
        "from kassay.experiments.study.evaluate_case import evaluate_case\n"
        "for case in family_cases('staircase', seeds=5, assignors=['sticky']):\n"
        "    record = evaluate_case(case)\n"
        "    print(record.optimum.status.join(['\"', '\"']))\n"
    )
    assert "--family staircase " in command("Add a family")
    line = f"{sys.executable} - <<'END'\n{script}END"
    assert extend("Add a family", line) == ["optimal"] * 5
