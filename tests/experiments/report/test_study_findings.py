import pandas as pd
import pytest

from kassay.experiments.report.study_report import study_findings
from kassay.experiments.report.study_tables import summarise_rows
from kassay.experiments.study.schemas import assignors_of, compared_assignors
from tests.stored_cases import stored_cases

COUNTS = stored_cases("counts_of_a_study")


def findings(*, assignor="sticky", **counts):
    rows = [
        {"family": "f", "mixed": mixed, "assignor": assignor}
        | {"scope": "generated", "largest_excess": 0, "largest_excess_ppm": 0}
        | dict.fromkeys(COUNTS, 0)
        | (COUNTS | counts if mixed else {})
        for mixed in (False, True)
    ]
    halves = tuple(summarise_rows(pd.DataFrame([row])) for row in rows)
    summaries = {assignor: summarise_rows(pd.DataFrame(rows))}
    return study_findings(summaries, {assignor: halves}, (assignor, "uniform"))


def test_findings_have_a_number_and_a_scope():
    balance, moves = findings(missed=3, missed_maximum=3, excess_ppm=600_000)
    assert "in 3 of 30 groups, 10% (3.5 to 25.6). Mixed subscriptions: 10%" in balance
    assert "mean excess is 2%" in balance
    assert "makes 0.5 unnecessary moves per rebalance on average, and at least one in 25%" in moves


@pytest.mark.parametrize(
    ("ending", "words"), [("nonterminating", "terminate"), ("failed", "fails")]
)
def test_groups_without_a_result_are_a_finding(ending, words):
    assert any(
        words in one and "2 of 30 groups" in one for one in findings(answered=28, **{ending: 2})
    )


def test_a_failing_own_assignor_is_the_first_finding():
    assert "fails on 2 of 30" in findings(assignor="mine", answered=28, failed=2)[0]
    assert "fails" not in findings(assignor="sticky", answered=28, failed=2)[0]


def test_an_own_assignor_without_failures_has_an_interval_that_contains_0():
    text = findings(assignor="mine", groups=34, answered=34)[0]
    assert text == "mine fails on 0 of 34 groups, 0% (0 to 10.2)."


def test_a_failure_is_shown_with_its_case_and_reason():
    text = findings(assignor="mine", answered=28, failed=2, failure="f/7: KeyError: 't'")[0]
    assert "of 30 groups, 6.7% (1.8 to 21.3), such as f/7: KeyError: 't'." in text


def test_own_assignors_and_previews_are_first_and_compared():
    names = ["uniform", "sticky", "kafka-clients@4.4.0:sticky", "mine", "uniform2"]
    assert assignors_of(names)[0] == "mine"
    assert compared_assignors(names) == ("mine", "uniform2", "sticky", "uniform")


def test_a_few_assignors_are_all_compared():
    names = ["range", "kafka-broker@4.4.0:uniform", "mine"]
    assert compared_assignors(names) == ("mine", "range", "kafka-broker@4.4.0:uniform")
