from types import SimpleNamespace

import pandas as pd
import pytest

from kassay.experiments.report.event_stream_section import (
    compare_pairs,
    sensitivity_table,
    trajectory_sections,
)
from kassay.experiments.report.report_table import ReportTable
from kassay.experiments.report.study_report import Report

COUNTS = {
    "rebalances": 10,
    "failed": 0,
    "owned": 100,
    "moves": 20,
    "fewest_moves": 10,
    "known": 8,
    "known_owned": 80,
    "unnecessary_moves": 4,
    "with_unnecessary_moves": 2,
    "above_least_makespan": 1,
    "above_least_squares": 3,
    "least_makespan": 50,
    "excess": 2,
    "largest_excess": 1,
    "with_hindsight": 5,
    "hindsight_moves": 8,
    "above_hindsight": 2,
}
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
    return SimpleNamespace(
        trajectories=pd.DataFrame(streams),
        events=pd.DataFrame(events),
    )


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
    times = dict(zip(section["times"].columns, section["times"].rows[0], strict=True))
    assert times["unowned time, eager, s"] == "7.00"
    assert times["unowned time, cooperative, s"] == "7.00"
    assert times["unowned time, KIP-848, s"] == "4.80"


def test_pairs_are_compared_by_stream(section):
    rows = {row[:2]: row[2:] for row in section["pairs"].rows}
    moves = ("2", "2", "0", "0", "−0.500", "–")
    assert rows["sticky → uniform", "moves"] == moves


def test_a_section_starts_with_its_findings(section):
    assert section["findings"][0] == (
        "sticky makes 0.500 unnecessary moves per rebalance. The maximum load is above its minimum "
        "after 10.0\xa0% of the rebalances."
    )


def test_each_stratum_has_its_own_number_of_streams(section):
    assert [row[:4] for row in section["strata"].rows[::3]] == [
        ("2–7 members", "sticky", "1", "10"),
        ("16–31 members", "sticky", "1", "10"),
        ("equal subscriptions", "sticky", "2", "20"),
    ]


def test_moves_are_split_by_subscriptions_beside_the_fewest_at_each_rebalance(section):
    moves = section["strata"].columns.index("moves")
    assert [(row[1], row[moves]) for row in section["strata"].rows[-3:]] == [
        ("sticky", "2.00"),
        ("uniform", "1.50"),
        ("fewest moves at each rebalance", "1.00"),
    ]


def test_the_primary_endpoint_has_only_rebalances_with_mixed_subscriptions():
    rows = {"sticky": COUNTS, "uniform": COUNTS | {"unnecessary_moves": 0}, "optimum": OPTIMAL}
    equal, mixed = summary(rows), summary({**rows, "uniform": COUNTS})
    both = pd.concat([equal.trajectories, mixed.trajectories.assign(mixed=True)])
    found = SimpleNamespace(trajectories=both, events=equal.events)
    [section] = trajectory_sections(found)
    [row] = section["primary"].rows
    assert row[:7] == ("sticky → uniform", "unnecessary moves", "2", "0", "2", "0", "0")


def test_page_and_markdown_state_the_limits_of_the_tables(section):
    values = {
        "manifest": {"configuration": {"families": []}, "versions": {}, "commit": None},
        "counts": {},
        "trajectories": (section,),
    }
    values |= {"measures": None, "overall": {}, "worst_groups": (), "named_groups": ()}
    report = Report(values)
    for text in (report.html, report.markdown):
        assert "Rebalances on which an assignor fails count for the other one" in text
        assert "only totals are determined, not the split by event" in text


def test_the_pairs_of_each_measure_are_adjusted_as_their_own_family():
    totals = SimpleNamespace(compare=lambda *_: SimpleNamespace(p_value=0.01))
    pairs, p_values = compare_pairs(totals, ("a", "b", "c"))
    assert len(pairs) == 9
    assert p_values == pytest.approx([0.03] * 9)


def test_tables_have_at_most_eight_columns(section):
    tables = [table for table in section.values() if isinstance(table, ReportTable)]
    assert tables
    assert max(len(table.columns) for table in tables) <= 8


def test_events_and_positions_have_ratios_of_sums(section):
    assert section["events"].rows[0][:4] == ("loss", "sticky", "10", "10.0")
    assert section["positions"].rows[0] == ("1–10", "sticky", "10", "10.0", "0.500", "5.00")


def test_other_assumptions_select_the_rebalances_that_they_name():
    rows = {"sticky": COUNTS, "optimum": OPTIMAL}
    one, two = summary(rows), summary({"sticky": COUNTS | {"excess": 12}, "optimum": OPTIMAL})
    mixed = two.trajectories.assign(mixed=True, start_members=50, seed=9)
    late = two.events.assign(event="restart-leave", period=5)
    streams, events = (pd.concat(pair) for pair in ((one.trajectories, mixed), (one.events, late)))
    found = {row[0]: row[2:4] for row in sensitivity_table(streams, events, ["sticky"]).rows}
    # Each stream of `one` has an excess of 2 of 50, the two of `two` have one of 12 of 50.
    assert found["as in the study"] == ("40", "14.0")
    assert found["all subscriptions equal"] == ("20", "4.00")
    assert found["32 members or more at the start"] == ("20", "24.0")
    assert found["no rolling restarts"] == ("10", "4.00")
    assert found["only later than the first 40 rebalances"] == ("10", "24.0")
    # The streams of `two` have the same seed.
    assert found["every stream with the same weight"] == ("40", "10.7")


def test_a_study_without_streams_has_no_section():
    empty = summary({"sticky": COUNTS}).trajectories.iloc[:0]
    assert trajectory_sections(SimpleNamespace(trajectories=empty, events=empty)) == ()


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
