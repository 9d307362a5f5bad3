"""The results of the finite families equal the committed results, on every machine."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from kassay.experiments.comparison.comparison_result import ComparedValue
from kassay.experiments.study.cases import Case, family_cases
from kassay.experiments.study.configuration import read_config
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.schemas import case_row
from tests.experiments.study.digests import case_digest, family_digest
from tools.published_tables import cell

STUDY = Path(__file__).parents[3] / "experiments" / "study"
CONFIG = read_config(
    (STUDY / "configurations" / "finite.yaml").read_text(encoding="utf-8"), "finite.yaml"
)
with (STUDY / "finite_families.csv").open(encoding="utf-8") as file:
    COMMITTED = list(csv.DictReader(file))
LARGE = {"worlds-3x4", "worlds-3x3", "jmh-small"}


def record(case):
    return evaluate_case(case, limits=CONFIG.limits, drawn=0)


def digest_of(found):
    return case_digest(case_row(found, position=0, study=""))


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=pytest.mark.long if family in LARGE else ())
        for family in CONFIG.families
    ],
)
def test_a_finite_family_has_the_committed_results(family):
    cases = family_cases({family: None}, assignors=CONFIG.assignors)
    records = [record(case) for case in cases]
    rows = [row for row in COMMITTED if row["family"] == family]
    assert {row["sha256"] for row in rows} == {family_digest(map(digest_of, records))}
    for row in rows:
        own = [c for r in records for c in r.comparisons if c.assignor == row["assignor"]]
        answered = [c for c in own if c.proven and c.ending == "ok"]
        assert int(row["groups"]) == sum(bool(c.proven) for c in own)
        assert int(row["answered"]) == len(answered)
        assert int(row["missed"]) == sum(not c.least_imbalance for c in answered)
        assert int(row["missed_maximum"]) == sum(c.imbalance["makespan"].gap > 0 for c in answered)


def test_a_digest_depends_on_every_result_and_not_on_times_and_order():
    found = record(Case(family="named", seed=1, assignors=("sticky", "uniform")))
    digest = digest_of(found)
    other = replace(found, comparisons=found.comparisons[::-1], timings=())
    assert digest_of(other) == digest
    first, second = found.comparisons
    changed = replace(found, comparisons=(replace(first, movement=ComparedValue(99)), second))
    assert digest_of(changed) != digest
    assert family_digest([digest, "0"]) == family_digest(["0", digest]) != family_digest([digest])


def test_the_committed_results_contain_all_finite_families_of_the_published_study():
    published = read_config(
        (STUDY / "configurations" / "published.yaml").read_text(encoding="utf-8"), "published.yaml"
    )
    finite = {name for name, seeds in published.families.items() if seeds is None}
    assert finite <= set(CONFIG.families) == {row["family"] for row in COMMITTED}


@pytest.mark.long
def test_groups_with_racks_have_the_published_checksum():
    text = (STUDY / "configurations" / "racks.yaml").read_text(encoding="utf-8")
    config, family = read_config(text, "racks.yaml"), "racks-equal-own-past"
    cases = family_cases({family: config.families[family]}, assignors=config.assignors)
    records = [evaluate_case(case, limits=config.limits, drawn=config.drawn) for case in cases]
    published = cell("racks", "**Provenance.**", family, "SHA-256 of the results")
    assert family_digest(map(digest_of, records)) == published
