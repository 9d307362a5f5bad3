"""Groups with racks: from the evaluation on Spark to the tables of the report."""

import pytest

from kassay.experiments.report.study_report import rack_section, render
from kassay.experiments.spark.study_pipeline import write_study
from kassay.experiments.study.cases import ImportedCases, cases_of
from kassay.experiments.study.configuration import StudyConfig, manifest
from kassay.experiments.study.output_reader import load_summary, read_manifest
from tests.experiments.conftest import stored_rows

pytestmark = pytest.mark.spark

ASSIGNORS = ("sticky", "uniform")
FAMILIES = ("racks-equal", "racks-mixed-own-past", "mixed-join")


@pytest.fixture(scope="module")
def directory(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("racks")
    described = StudyConfig(
        families=dict.fromkeys(FAMILIES), seeds=12, assignors=ASSIGNORS
    ).described(ImportedCases())
    described |= {"study": {"file": "racks.yaml"}}
    write_study(
        spark,
        cases_of(FAMILIES, seeds=12, assignors=ASSIGNORS),
        str(path),
        manifest=lambda rows: manifest(described, rows=rows, run={"seconds": 1.0}),
    )
    return path


@pytest.fixture(scope="module")
def summary(directory):
    return load_summary(directory)


@pytest.fixture(scope="module")
def rows(directory):
    """The distances to the front, with the columns of their groups."""
    cases = stored_rows(directory, read_manifest(directory))
    return [{**case["groups"], **row} for case in cases for row in case["front_distances"]]


def test_the_summary_has_the_sums_of_the_rows(summary, rows):
    found = summary.fronts.set_index(["family", "assignor"])
    for key in {(row["family"], row["assignor"]) for row in rows}:
        own = [row for row in rows if (row["family"], row["assignor"]) == key]
        sums = found.loc[key]
        assert sums["groups"] == len(own)
        assert sums["on_front"] == sum(row["on_front"] is True for row in own)
        assert sums["off_rack"] == sum(row["off_rack"] for row in own)
        for name, value, least, bound in (
            ("same_racks", "moves", "moves_within", "moves_bound"),
            ("any_racks", "moves", "fewest_moves", "fewest_moves"),
            ("no_racks", "moves_without_racks", "fewest_moves_without_racks", None),
            ("avoidable_reads", "off_rack", "off_rack_within", "off_rack_bound"),
            ("avoidable_imbalance", "imbalance", "imbalance_within", "imbalance_bound"),
        ):
            proven = [row for row in own if bound is None or row[least] == row[bound]]
            extra = [row[value] - row[least] for row in proven]
            assert sums[f"{name}_known"] == len(extra)
            assert sums[f"{name}_groups"] == sum(one > 0 for one in extra)
            assert sums[name] == sum(extra)


@pytest.fixture(scope="module")
def report(summary):
    return render(summary)


def test_the_section_shows_shares_with_exact_numbers(summary, rows):
    section = rack_section(summary)
    front, moves = (
        {row[:2]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
        for table in (section["front"], section["moves"])
    )
    assert list(front) == list(moves)
    for key, cells in front.items():
        own = [row for row in rows if (row["family"], row["assignor"]) == key]
        known = [row for row in own if row["on_front"] is not None]
        on_front = sum(row["on_front"] for row in known)
        assert cells["groups"] == str(len(own))
        assert cells["without a result"] == "0"
        assert cells["on the front"].endswith(f", {on_front} of {len(known)}")
        wasteful = sum(row["moves"] > row["fewest_moves"] for row in own)
        cell = moves[key]["groups with unnecessary moves: any off-rack reads"]
        assert cell.endswith(f", {wasteful} of {len(own)}")
    equal = moves["racks-equal", "sticky"]
    assert equal["unnecessary moves per rebalance: without racks"] == "0"
