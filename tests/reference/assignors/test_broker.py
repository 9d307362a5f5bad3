"""Assignors of the broker."""

from kassay import movement
from kassay.reference.assignors import assign, run_assignor
from tests.notation import after, group, joined


def test_uniform_keeps_owned_partitions_up_to_the_quota() -> None:
    start = after(group("t:4", a="t", b="t"), "uniform")
    grown = joined(start, c="t")
    assert movement(grown, assign(grown, "uniform")) == 1


def test_uniform_moves_partitions_of_a_balanced_group_only_in_4_0() -> None:
    start = group("t:3", a="t | t-0", b="t | t-1 t-2")
    assert movement(start, assign(start, "uniform")) == 0
    assert movement(start, assign(start, "uniform-4.0")) == 1


def test_uniform_is_not_optimal_for_mixed_subscriptions() -> None:
    start = group(
        "T1:15 T2:15",
        M1="T1 | " + " ".join(f"T1-{p}" for p in range(9)),
        M2="T1 T2 | " + " ".join([f"T1-{p}" for p in range(9, 15)] + [f"T2-{p}" for p in range(4)]),
        M3="T2 | " + " ".join(f"T2-{p}" for p in range(4, 15)),
    )
    assert assign(start, "uniform").counts() == {"M1": 9, "M2": 10, "M3": 11}


def test_uniform_balances_mixed_subscriptions() -> None:
    start = group("t:4 u:2", a="t", b="t u")
    assert assign(start, "uniform").counts() == {"a": 3, "b": 3}


def test_uniform_fails_if_a_claimed_partition_does_not_exist() -> None:
    failed = run_assignor(group("t:1 u:1", a="t u | t-5", b="t"), "uniform").failed
    assert failed is not None
    assert failed.java_class == "ArrayIndexOutOfBoundsException"
