"""Forecasts of rolling restarts, compared with recorded groups of four Java consumers."""

import json

import pytest

pytest.importorskip("jpype")

from tests.conformance.rolling_restarts import CASES, RECORDED, compared, moves_between_states

RESTARTS = json.loads(RECORDED.read_text(encoding="utf-8"))


def test_each_case_is_recorded():
    assert list(RESTARTS) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_forecast_equals_what_the_group_did(name):
    assignor, _ = CASES[name]
    found = compared(assignor, RESTARTS[name])
    assert {len(state) for state in found.observed} == {3, 4}
    assert found.predicted == found.observed
    # The partitions of a member that left go to members without being moves.
    assert found.moves[1:] == moves_between_states(found.observed)
