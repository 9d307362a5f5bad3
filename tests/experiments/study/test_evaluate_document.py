"""Studies of share groups, Streams applications and Connect clusters."""

from pathlib import Path

import pytest

from kassay.experiments.report.study_tables import MAIN_MEASURES
from kassay.experiments.study.cases import family_cases
from kassay.experiments.study.configuration import read_config
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.families.all_families import DOCUMENT_FAMILIES
from kassay.reference.documents.kind_documents import Kind

CONFIGURATIONS = Path(__file__).parents[3] / "experiments" / "study" / "configurations"
KINDS = {"share": Kind.SHARE, "streams": Kind.STREAMS, "connect": Kind.CONNECT}


def records(family, seeds=2, assignors=()):
    return [evaluate_case(case) for case in family_cases({family: seeds}, assignors=assignors)]


def total(family, measure, assignor, seeds=2):
    return sum(
        row.value
        for record in records(family, seeds, [assignor])
        for row in record.measures
        if row.measure == measure
    )


@pytest.mark.parametrize("family", DOCUMENT_FAMILIES)
def test_each_case_has_an_answer_and_none_is_below_a_bound(family):
    for record in records(family):
        assert record.group.error is None
        assert {row.ending for row in record.assignments} == {"ok"}
        known = [row for row in record.measures if row.bound is not None]
        assert known
        assert all(row.value >= row.bound for row in known)
        assert set(MAIN_MEASURES) & {row.measure for row in known}


@pytest.mark.parametrize("kind", KINDS)
def test_each_configuration_has_the_families_of_one_kind(kind):
    text = (CONFIGURATIONS / f"{kind}.yaml").read_text(encoding="utf-8")
    config = read_config(text, f"{kind}.yaml")
    expected = [name for name, one in DOCUMENT_FAMILIES.items() if one.kind is KINDS[kind]]
    assert sorted(config.families) == sorted(expected)
    assert {name for case in config.cases() for name in case.assignors} == set(config.assignors)


def test_the_delay_decides_how_long_the_tasks_of_a_restarted_worker_stop():
    """In each cluster of 2 cases, the worker that restarts has tasks."""
    families = ("connect-restart", "connect-restart-40s", "connect-restart-0s")
    long, short, none = (
        total(family, "task_stopped_ms", "connect-incremental") for family in families
    )
    assert (long * 40, none) == (short * 300, 0)
    starts = [total(family, "task_starts", "connect-incremental") for family in families]
    assert starts[0] == starts[1] < starts[2]
