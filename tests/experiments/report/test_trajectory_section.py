from types import SimpleNamespace

import pandas as pd
import pytest

from kassay.experiments.report.event_stream_section import trajectory_sections
from tests.stored_cases import stored_cases

COUNTS = stored_cases("counts_of_event_streams")
KEYS = {"family": "trajectories", "mixed": False}
OPTIMAL = COUNTS | {"moves": 10, "known": 10, "unnecessary_moves": 0}


def summary(rows):
    streams = [
        KEYS | {"assignor": name, "seed": seed, "start_members": members} | counts
        for seed, members in ((3, 5), (5, 20))
        for name, counts in rows.items()
    ]
    events = [
        KEYS | {"assignor": name, "event": "loss", "period": 0} | counts
        for name, counts in rows.items()
    ]
    return SimpleNamespace(trajectories=pd.DataFrame(streams), events=pd.DataFrame(events))


@pytest.fixture(scope="module")
def section():
    rows = {"sticky": COUNTS, "uniform": COUNTS | {"moves": 15}, "optimum": OPTIMAL}
    [found] = trajectory_sections(summary(rows))
    return found


def test_the_numbers_of_streams_and_results_are_counted(section):
    assert (section["streams"], section["rebalances"]) == (2, 20)
    assert (section["judged"], section["unknown"]) == (40, 8)


def test_the_tables_of_assignors_have_values_in_their_units(section):
    balance = section["balance"].rows[0]
    assert balance == ("sticky", "20", "0", "10.0", "30.0", "4.00")
    moves = dict(zip(section["moves"].columns, section["moves"].rows[0], strict=True))
    assert moves["moves"] == "2.00"
    assert moves["unnecessary moves"] == "0.500"
    assert moves["unnecessary moves per owned partition, %"] == "5.00"
    assert moves["moves above the fewest at each rebalance"] == "1.00"


def test_pairs_are_compared_by_stream(section):
    rows = {row[:2]: row[2:] for row in section["pairs"].rows}
    moves = ("2", "2", "0", "0", "−0.500")
    assert rows["sticky → uniform", "moves"] == moves


def test_a_failing_own_assignor_is_the_first_finding_and_has_no_pairs():
    none = dict.fromkeys(COUNTS, 0) | {"rebalances": 10, "failed": 10}
    [section] = trajectory_sections(summary({"sticky": COUNTS, "mine": none, "optimum": OPTIMAL}))
    assert section["findings"][0] == "mine fails on 20 of 20 rebalances."
    rows = {row[:2]: row[3:] for row in section["pairs"].rows}
    assert rows["mine → sticky", "unnecessary moves"] == ("0", "0", "0", "–")


def test_the_primary_endpoint_has_only_rebalances_with_mixed_subscriptions():
    rows = {"sticky": COUNTS, "uniform": COUNTS | {"unnecessary_moves": 0}, "optimum": OPTIMAL}
    equal, mixed = summary(rows), summary({**rows, "uniform": COUNTS})
    both = pd.concat([equal.trajectories, mixed.trajectories.assign(mixed=True)])
    found = SimpleNamespace(trajectories=both, events=equal.events)
    [section] = trajectory_sections(found)
    [row] = section["primary"].rows
    assert row[:7] == ("sticky → uniform", "unnecessary moves", "2", "0", "2", "0", "0")


def test_moves_above_hindsight_are_summed_over_the_streams_that_have_one():
    rows = {"sticky": COUNTS, "optimum": OPTIMAL, "hindsight": OPTIMAL | {"above_hindsight": 0}}
    found, names = trajectory_sections(summary(rows))[0], ("sticky", "optimum")
    # Both streams are small enough: 16 moves with hindsight, 4 more by `sticky`.
    assert found["hindsight"].columns[3:] == ("fewest moves at each rebalance", "sticky")
    assert [row[:3] + row[4:] for row in found["hindsight"].rows] == [
        ("equal, 2–7 members", "1 of 1", "8", "25.0"),
        ("equal, 16–31 members", "1 of 1", "8", "25.0"),
        ("equal, all", "2 of 2", "16", "25.0"),
    ]
    assert found["judged"] == 20 * (len(names) - 1)
