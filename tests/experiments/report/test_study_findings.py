import pandas as pd
import pytest

from kassay.experiments.report.assignor_results import summarise_rows
from kassay.experiments.report.study_report import study_findings
from tests.stored_cases import stored_cases

COUNTS = stored_cases("counts_of_a_study")


def findings(**counts):
    rows = [
        {"family": "f", "mixed": mixed, "assignor": "sticky"}
        | {"scope": "generated", "largest_excess": 0, "largest_excess_ppm": 0}
        | dict.fromkeys(COUNTS, 0)
        | (COUNTS | counts if mixed else {})
        for mixed in (False, True)
    ]
    halves = tuple(summarise_rows(pd.DataFrame([row])) for row in rows)
    summaries = {"sticky": summarise_rows(pd.DataFrame(rows))}
    return study_findings(summaries, {"sticky": halves}, ("sticky", "uniform"))


def test_findings_have_a_number_and_a_scope():
    balance, moves = findings(missed=3, missed_maximum=3, excess_ppm=600_000)
    assert "in 3 of 30 groups, 10\xa0% (3.5 to 25.6). Mixed subscriptions: 10\xa0%" in balance
    assert "mean excess is 2\xa0%" in balance
    assert "makes 0.5 unnecessary moves per rebalance, in 25\xa0% (" in moves


@pytest.mark.parametrize(
    ("ending", "words"), [("nonterminating", "terminate"), ("failed", "fails")]
)
def test_groups_without_a_result_are_a_finding(ending, words):
    assert any(
        words in one and "2 of 30 groups" in one for one in findings(answered=28, **{ending: 2})
    )
