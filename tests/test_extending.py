"""Tests of docs/extending.md: its examples are applied to a copy of the packages and run."""

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
TEST_FILES = (
    "tests/__init__.py",
    "tests/brute_force.py",
    "tests/notation.py",
    "tests/tiers.py",
    "tests/solver/__init__.py",
    "tests/solver/random_cases.py",
    "tests/solver/test_cpsat.py",
    "tests/experiments/implementations/test_library_lists.py",
)
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
RANDOM_CASES = f"{PYTEST} tests/solver/test_cpsat.py"


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
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def changes(title: str) -> dict[str, str]:
    """Return the changes of the example that a section links, by file."""
    example = re.search(r"\]\(\.\./(examples/extending/\w+\.diff)\)", section(title))[1]
    diffs = re.split(r"^(?=--- )", (ROOT / example).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.search(r"^\+\+\+ b/(.+)$", diff, re.MULTILINE)[1]: diff for diff in diffs[1:]}


def apply_section(title: str, root: Path, *, left_out: str | None = None) -> None:
    """Apply the diffs of a section, except that of one file."""
    diffs = changes(title)
    assert diffs
    for file, diff in diffs.items():
        if file != left_out:
            apply_diff(diff, root)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a directory with a copy of the packages, and of the random cases of the tests."""
    for folder in (*FOLDERS, "kassay"):
        # Other processes write files such as module.pyc.123, and rename them.
        skipped = shutil.ignore_patterns("notebooks", "*.pyc.*")
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=skipped)
    for file in TEST_FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, tmp_path / file)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def run_command(directory: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        re.sub(r"\bkassay (?=[a-z])", f"{sys.executable} -m kassay ", line),
        shell=True,
        cwd=directory,
        env={**os.environ, "XDG_CACHE_HOME": str(directory / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def extend(copied: Path):
    """Return a function that applies a section and runs a command with the changed packages."""

    def run(title: str, line: str) -> list[Any]:
        apply_section(title, copied)
        done = run_command(copied, line)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_a_new_assignor_is_compared_with_the_optimum(extend):
    rows = extend("Add an assignor", command("Add an assignor"))
    comparisons = [comparison for row in rows for comparison in row["comparisons"]]
    assert [comparison["assignor"] for comparison in comparisons] == ["first-subscriber"] * 5
    assert {comparison["ending"] for comparison in comparisons} == {"ok"}


LIBRARY = "Add a client library"
INSTALL = "kassay libraries install first-client"


def test_a_new_client_library_is_compared_with_the_optimum(extend):
    *_, last = extend(LIBRARY, f"{INSTALL} > installed.txt && {command(LIBRARY)}")
    assert [one["assignor"] for one in last["comparisons"]] == ["first-client@1.0.0:first"]


@pytest.mark.long
@pytest.mark.parametrize("left_out", changes(LIBRARY))
def test_each_missing_step_of_a_client_library_is_an_error_that_names_it(copied, left_out):
    apply_section(LIBRARY, copied, left_out=left_out)
    tests = f"{PYTEST} tests/experiments/implementations/test_library_lists.py"
    done = [run_command(copied, line) for line in (f"{INSTALL} && {command(LIBRARY)}", tests)]
    errors = "".join(one.stdout + one.stderr for one in done if one.returncode)
    names = {"experiments/implementations/libraries.yaml": "first-client"}
    assert names.get(left_out, Path(left_out).name) in errors


def test_a_new_source_is_imported(extend):
    [document] = extend("Add a source of groups", command("Add a source of groups"))
    assert document["id"] == "g"
    assert document["topics"] == {"t": {"partitions": 1, "weights": [7]}}
    assert document["members"][0]["owned"] == [["t", 0]]


def test_a_new_level_is_minimised(extend):
    [solution] = extend("Add a level", command("Add a level"))
    assert solution["status"] == "optimal"
    assert solution["topics_consumed"] == {"value": 2, "bound": 2}


CONSTRAINT = "Add a constraint"


def test_a_new_constraint_is_met_and_certified(extend):
    [solution] = extend(CONSTRAINT, command(CONSTRAINT))
    assert solution["status"] == "optimal"
    assert solution["loads"] == {"m": 2, "n": 2}
    assert solution["certificate"]["constraints"] == [{"constraint": "min_partitions", "limit": 2}]


@pytest.mark.long
def test_brute_force_checks_a_new_constraint(copied):
    apply_section(CONSTRAINT, copied)
    done = run_command(copied, RANDOM_CASES)
    assert done.returncode == 0, done.stdout
    solved = command(CONSTRAINT).replace("kassay solve", "kassay solve --method cp-sat")
    group = re.search("echo ('.*') ", solved)[1]
    verify = "kassay verify g.json --assignment s.json --min-partitions 2"
    done = run_command(copied, f"echo {group} > g.json; {solved} > s.json; {verify}")
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("left_out", changes(CONSTRAINT))
def test_each_missing_step_of_a_constraint_is_an_error_that_names_it(copied, left_out):
    apply_section(CONSTRAINT, copied, left_out=left_out)
    solve = command(CONSTRAINT)
    members = ", ".join(f'{{"id": "m{number}", "topics": ["a"]}}' for number in range(9))
    large_group = f'{{"topics": {{"a": 40}}, "members": [{members}]}}'
    lines = (
        solve,
        f"echo '{large_group}' | kassay solve --min-partitions 5",
        solve.replace("kassay solve", "kassay solve --method cp-sat"),
        f"{sys.executable} -c 'import kassay; kassay.MinPartitions'",
        f"{RANDOM_CASES} -k 'each_kind or under_any_constraints'",
    )
    failed = [one for one in (run_command(copied, line) for line in lines) if one.returncode]
    file = left_out.removesuffix("i")  # Errors name __init__.py, which reads __init__.pyi.
    module = file.removesuffix(".py").replace("/", ".")
    names = ("--min-partitions",) if "cli" in left_out else (file, module)
    errors = "".join(one.stdout + one.stderr for one in failed)
    assert any(name in errors for name in names)


def test_a_new_family_is_studied(extend):
    # Without Spark: the command of the page evaluates the same cases on workers.
    script = (
        "from kassay.experiments.study.cases import family_cases\n"
        "from kassay.experiments.study.evaluate_case import evaluate_case\n"
        "for case in family_cases({'staircase': 5}, assignors=['sticky']):\n"
        "    record = evaluate_case(case)\n"
        "    print(record.optimum.status.join(['\"', '\"']))\n"
    )
    assert "--family staircase " in command("Add a family")
    line = f"{sys.executable} - <<'END'\n{script}END"
    assert extend("Add a family", line) == ["optimal"] * 5
