from kassay.experiments.study.cases import cases_of

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
