import pandas as pd
import pytest

from kassay.experiments.report.event_stream_section import RATES, Rate, StreamTotals

MOVES, ABOVE = Rate("moves", "rebalances"), Rate("moves", "rebalances", minus="optimal_moves")
ZERO = dict.fromkeys({rate.column for rate in RATES.values()} | {"known", "known_owned"}, 0)


def row(seed, assignor, moves, rebalances=10):
    counts = {"rebalances": rebalances, "moves": moves, "failed": 0, "least_makespan": 1}
    keys = {"family": "demo", "seed": seed, "assignor": assignor}
    return ZERO | keys | {"mixed": False, "start_members": 3} | counts


TABLE = pd.DataFrame(
    [
        row(seed, assignor, moves)
        for seed, values in enumerate([(4, 6, 4), (0, 0, 0), (8, 5, 2)])
        for assignor, moves in zip(("one", "two", "optimum"), values, strict=True)
    ]
)


def test_a_rate_is_a_ratio_of_sums_over_all_streams():
    totals = StreamTotals(TABLE)
    assert totals.streams == 3
    assert totals.estimate("one", MOVES).value == pytest.approx(12 / 30)
    assert totals.estimate("one", ABOVE).value == pytest.approx(6 / 30)
    assert totals.estimate("optimum", ABOVE).value == 0
    assert totals.estimate("one", Rate("unnecessary_moves", "known")) is None


def test_intervals_contain_the_value_and_are_equal_in_every_run():
    one, two = (StreamTotals(TABLE).estimate("one", MOVES) for _ in range(2))
    assert one == two
    assert 0 <= one.low < one.value < one.high <= 0.8


def test_two_assignors_are_compared_on_each_stream():
    pair = StreamTotals(TABLE).compare("one", "two", RATES["moves"])
    assert (pair.lower, pair.equal, pair.higher) == (1, 1, 1)
    assert pair.difference.value == pytest.approx(-1 / 30)
    assert pair.difference.low < 0 < pair.difference.high


def test_the_rows_of_a_stream_with_several_subscriptions_are_added():
    double = pd.concat([TABLE, TABLE.assign(mixed=True)])
    totals = StreamTotals(double)
    assert totals.streams == 3
    assert totals.total("one", "moves") == 24
