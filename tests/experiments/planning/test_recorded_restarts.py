"""Forecasts of rolling restarts, compared with recorded groups of four Java consumers."""

import json

import pytest

pytest.importorskip("jpype")

from tests.conformance.rolling_restarts import CASES, RECORDED, compared

RESTARTS = json.loads(RECORDED.read_text(encoding="utf-8"))


def test_each_case_is_recorded():
    assert list(RESTARTS) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_forecast_equals_what_the_group_did(name):
    assignor, subscriptions = CASES[name]
    found = compared(assignor, RESTARTS[name])
    assert {len(state) for state in found.observed} == {3, 4}
    assert found.predicted == found.observed
    assert found.moves[0] == found.moves[1]
    fewest = found.forecast.fewest
    assert fewest.is_optimal
    assert all(one.moves >= fewest.moves for one in found.forecast.courses)
    own = next(one for one in found.forecast.courses if one.name == assignor)
    if subscriptions["pod-2"] != subscriptions["pod-0"]:
        assert own.moves > fewest.moves
