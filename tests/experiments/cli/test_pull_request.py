"""Forms for a pull request: Markdown tables, and JUnit tests that compile and run."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kassay import Group
from kassay.experiments.implementations.client_libraries import installations
from kassay.experiments.report.pull_request_texts import ComparedGroup, markdown_table
from kassay.reference.documents.json_codec import group_document
from tests.experiments.cli.conftest import Completed
from tests.installed_library import require_library
from tests.notation import group
from tests.stored_cases import java_source

UNEVEN = group("t:3 u:2", a="t u | t-0 t-1 t-2 @1", b="t u", c="t")
"""``uniform`` moves one partition, ``server-range`` two."""


JUNIT = ("org/junit/jupiter/api/Assertions", "org/junit/jupiter/api/Test", "Run")
"""The parts of JUnit that a test uses, so that it compiles without JUnit, and their caller."""


def compared(before: tuple[int, int], after: tuple[int, int], *, group: Group) -> ComparedGroup:
    """Return the record of a group with imbalance and moves of two assignors."""
    entries = [
        {"ending": "ok", "sum_of_squares": {"value": imbalance}, "movement": {"value": moves}}
        for imbalance, moves in (after, before)
    ]
    optimum = {"measure": "sum_of_squares", "imbalance": 9, "movement": 0}
    return ComparedGroup(group, {"optimum": optimum, "comparisons": entries})


def test_the_markdown_table_has_paired_differences_and_the_smallest_regression() -> None:
    small, large = group("t:2", a="t", b="t"), group("t:9", a="t", b="t", c="t")
    groups = [
        compared((10, 1), (12, 1), group=large),
        compared((10, 1), (10, 2), group=small),
        compared((10, 3), (10, 1), group=small),
    ]
    text = markdown_table(groups, after="new", before="old", command=["compare", "g.jsonl"])
    assert "| sum of squared loads | 10 | 10.67 | +0.667 (+0 to +2) | 0 | 1 |" in text
    assert "| moves | 1.667 | 1.333 | -0.333 (-2 to +1) | 1 | 1 |" in text
    assert "Smallest of 2 regressions:" in text
    assert "with 2 members and 2 partitions: sum of squared loads 10 before, 10 after" in text
    assert "Command: `kassay compare g.jsonl`" in text
    assert len(text.splitlines()) <= 25


def test_failed_groups_are_counted_and_in_no_mean() -> None:
    failed = compared((10, 1), (10, 1), group=UNEVEN)
    failed.record["comparisons"][0]["ending"] = "failed"
    good = compared((10, 1), (10, 1), group=UNEVEN)
    text = markdown_table([failed, good], after="new", before="old", command=["compare"])
    assert "Failed groups: before 0, after 1." in text
    assert "of 1 with two results." in text
    assert "No group has a higher imbalance" in text


def test_forms_are_printed_for_all_groups(tmp_path: Path, kassay: Callable[..., Completed]) -> None:
    file = tmp_path / "g.json"
    file.write_text(json.dumps(group_document(UNEVEN)))
    names = ("--assignor", "new=server-range", "--assignor", "uniform")
    done = kassay("compare", file, *names, "--format", "markdown")
    assert done.code == 0
    assert "### `new` (after) and `uniform` (before) on 1 group\n" in done.out


@pytest.mark.libraries
@pytest.mark.parametrize(
    ("library", "package", "better", "best"),
    [
        ("kafka-broker@4.4.0", "coordinator.group.assignor", "uniform", "UniformAssignor"),
        ("kafka-clients@4.4.0", "clients.consumer", "sticky", "StickyAssignor"),
    ],
)
def test_a_junit_test_fails_for_the_worse_class_and_passes_for_the_other(
    library: str,
    package: str,
    better: str,
    best: str,
    tmp_path: Path,
    kassay: Callable[..., Completed],
) -> None:
    require_library(library)
    assert shutil.which("javac")
    odd = 'ü"\\ \U0001f600'
    named = json.dumps(group_document(UNEVEN)).replace('"a"', json.dumps(odd))
    (tmp_path / "g.json").write_text(named)
    worse = f"class:org.apache.kafka.{package}.RangeAssignor@{tmp_path}"
    names = ("--assignor", worse, "--assignor", better)
    text = kassay("compare", tmp_path / "g.json", *names, "--format", "junit").out
    jars = str(installations() / library / "jars" / "*")
    found = []
    for java_class in ("RangeAssignor", best):
        folder = tmp_path / java_class
        folder.mkdir()
        test = text.replace("RangeAssignor", java_class)
        sources = {name: java_source(name) for name in JUNIT} | {"KassayRegressionTest": test}
        for name, source in sources.items():
            (folder / f"{Path(name).name}.java").write_text(source, encoding="utf-8")
        files = [str(file) for file in folder.glob("*.java")]
        subprocess.run(["javac", "-nowarn", "-d", folder, "-cp", jars, *files], check=True)
        command = ["java", "-cp", f"{folder}:{jars}", "Run"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(done.stdout.splitlines())
    assert found == [["2 moves, possible: 1"], ["passed"]]
