import pytest

from kassay.experiments.study.cases import (
    JoinedCases,
    Stratum,
    cases_of,
    document_id,
    imported_cases,
)

CASES = cases_of(
    ["mixed-join", "mixed-churn", "named"], seeds=41, assignors=["range", "sticky"], first_seed=3
)


def test_a_case_follows_from_its_index():
    assert len(CASES) == 21 + 20 * 2 + 5
    assert [CASES[index] for index in range(len(CASES))] == list(CASES)
    assert CASES[0].name == "mixed-join/3"
    assert [CASES[index].name for index in (21, 22, 23)] == [
        "mixed-churn/3@range",
        "mixed-churn/3@sticky",
        "mixed-churn/4@range",
    ]
    assert CASES[len(CASES) - 1].name == "named/4"
    assert len({case.name for case in CASES}) == len(CASES)


def test_empty_parts_are_skipped():
    empty = Stratum(family="mixed-join", first_seed=0, seeds=0, assignors=("range",))
    imported = imported_cases(["{}"], assignors=["range"])
    joined = JoinedCases((empty, imported, empty))
    assert [case.name for case in joined] == [f"imported/{document_id('{}')}"]
    assert len(JoinedCases(())) == 0


@pytest.mark.parametrize("change", [{"first_seed": 4}, {"seeds": 42}, {"assignors": ["range"]}])
def test_descriptions_of_different_cases_differ(change):
    options = {"seeds": 41, "assignors": ["range", "sticky"], "first_seed": 3, **change}
    other = cases_of(["mixed-join", "mixed-churn", "named"], **options)
    assert repr(other) != repr(CASES)
