import io
from ast import literal_eval
from types import SimpleNamespace

import pandas as pd
import pytest

from kassay.experiments.report.effect_tables import effect_section

COUNTS = {"answered": 100, "known": 50, "missed_maximum": 10, "wasteful": 5, "groups": 100}
SUMS = {"excess_ppm": 20_000_000, "excess_squares": 2_000_000_000}
FAMILIES = {"mixed-join": 1.0, "mixed-leave": 0.5, "overlap-nested": 2.0}


def study(families, **changes):
    """Return the tables of a study with two assignors and the given rates per family."""
    keys = [
        {"family": family, "scope": "generated", "assignor": assignor}
        for family in families
        for assignor in ("sticky", "uniform")
    ]
    outcomes = [key | {"mixed": True} | COUNTS | SUMS | changes for key in keys]
    gaps = [
        key | {"gap": "unnecessary_moves", "owned": True, "value": value, "groups": number}
        for key in keys
        for value, number in ((0, 45), (int(4 * families[key["family"]]), 5))
    ]
    pairs = [
        {"family": family, "scope": "generated", "before": "sticky", "after": "uniform"}
        | {"least_before": True, "least_after": same, "difference": 1 - same, "groups": 10}
        for family in families
        for same in (True, False)
    ]
    cells = [
        key
        | {"seed": None, "mixed": True, "members": members, "partitions": partitions}
        | {"answered": 10, "above_maximum": 1, "excess_ppm": 500_000, "known": 5, "wasteful": 1}
        | {"unnecessary_moves": int(100 * families[key["family"]] * 2**partitions)}
        for key in keys
        for members in (1, 2, 3)
        for partitions in (2, 3)
    ]
    return SimpleNamespace(
        outcomes=pd.DataFrame(outcomes).astype({"mixed": "boolean"}),
        gaps=pd.DataFrame(gaps),
        pairs=pd.DataFrame(pairs),
        cells=pd.DataFrame(cells),
    )


def parameters(families):
    return [
        {"name": name, "event": name.partition("-")[2] if name.startswith("mixed") else None}
        for name in families
    ]


@pytest.fixture(scope="module")
def section():
    return effect_section(study(FAMILIES), parameters(FAMILIES), ["sticky", "uniform"])


def test_families_are_combined_with_their_numbers_of_groups(section):
    rows = {row[:2]: row for row in section["families"].rows}
    excess = rows["excess of the maximum load, %", "sticky"]
    assert excess[2:4] == ("3 of 3", "300")
    assert excess[4].startswith("20.0 (")
    assert rows["with unnecessary moves, %", "uniform"][3] == "150"
    moves = rows["unnecessary moves per rebalance", "sticky"]
    assert 0.2 < float(moves[4].split()[0]) < 0.8
    assert moves[5].startswith("0 to ")


def test_the_prediction_interval_of_a_rate_starts_at_0_in_text_and_csv(section):
    table = section["families"]
    csv = pd.read_csv(io.StringIO(table.csv)).set_index(["measure", "name"])
    low, high = literal_eval(csv.loc[("unnecessary moves per rebalance", "sticky"), "predicted"])
    assert low == 0 < high


def test_differences_of_pairs_can_be_negative_in_the_prediction_interval(section):
    csv = pd.read_csv(io.StringIO(section["pairs"].csv))
    assert min(literal_eval(text)[0] for text in csv["predicted"]) < 0


def test_pairs_are_compared_within_each_family(section):
    rows = {row[:2]: row for row in section["pairs"].rows}
    assert rows["unnecessary moves per rebalance", "sticky → uniform"][4].startswith("0.500 (")
    assert rows["minimum imbalance not reached, points", "sticky → uniform"][2] == "3 of 3"


def test_events_are_compared_between_families_of_one_kind(section):
    changes = {row[1]: row[2] for row in section["effects"].rows if row[0].startswith("unnec")}
    # The families mixed-join and mixed-leave are one stratum, and the second has half the rate.
    assert changes["number in the model"] == "90 of 90"
    rates = [100 * rate * (4 + 8) * 3 / 30 for rate in FAMILIES.values()]
    mean = sum(rates) / 3
    assert float(changes["mean in the model"].replace("−", "-")) == pytest.approx(mean, rel=0.01)
    contrast = changes["leave instead of join"].split()[0].replace("−", "-")
    assert float(contrast) == pytest.approx(rates[1] - rates[0], rel=0.01)


def test_each_measure_has_a_forest_plot(section):
    assert len(section["forests"]) == 6
    assert all(name in section["forests"][0].svg for name in FAMILIES)


def test_one_group_per_family_has_no_mean_of_the_excess():
    results = study(FAMILIES, answered=1, missed_maximum=1)
    rows = effect_section(results, parameters(FAMILIES), ["sticky"])["families"].rows
    assert rows[0][2:4] == ("0 of 0", "–")


def test_a_single_family_is_not_combined():
    results = study({"mixed-join": 1.0})
    assert effect_section(results, parameters(["mixed-join"]), ["sticky"]) is None
