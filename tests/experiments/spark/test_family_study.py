"""The study of share groups, Connect clusters and Streams applications."""

import pytest

from benchmarks.family_study import PAGE, PLACE, PROBLEMS, RESTARTS, evaluate, evaluate_on_spark


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_answer_is_below_a_proven_minimum(name):
    rows = [row for seed in range(3) for row in evaluate({"problems": name, "seed": seed})]
    assert {row["seed"] for row in rows} == {0, 1, 2}
    if name == RESTARTS:
        assert not any(row["is_proven"] for row in rows)
    else:
        assert all(row["value"] >= row["minimum"] and row["is_proven"] for row in rows)


def test_loads_of_equal_subscriptions_are_the_lowest():
    name = "share, equal subscriptions"
    rows = [row for seed in range(5) for row in evaluate({"problems": name, "seed": seed})]
    loads = [row for row in rows if row["measure"] == "sum_of_squares"]
    assert loads
    assert all(row["value"] == row["minimum"] for row in loads)


def test_the_page_has_the_tables_of_the_study():
    text = PAGE.read_text(encoding="utf-8")
    assert f"<!-- {PLACE}: begin -->" in text
    assert f"<!-- {RESTARTS}: begin -->" in text


@pytest.mark.spark
def test_spark_returns_the_rows_of_one_process(spark):
    found = {
        (row["problems"], row["seed"], row["measure"], row["value"])
        for row in evaluate_on_spark(spark, 1).collect()
    }
    expected = {
        (row["problems"], row["seed"], row["measure"], row["value"])
        for name in PROBLEMS
        for row in evaluate({"problems": name, "seed": 0})
    }
    assert found == expected
