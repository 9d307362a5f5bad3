"""The tables of counts equal counts of the rows in plain Python."""

from collections import Counter

import pytest

from kassay.experiments.study.output_reader import read_manifest
from tests.experiments.conftest import stored_rows
from tests.experiments.study.digests import case_digest, family_digest

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def counted(comparisons):
    """Rows with a proven optimum, without hand-written groups."""
    return [row for row in comparisons if row["family"] != "named" and row["proven"]]


def generated(table):
    return table[table["scope"] == "generated"]


def test_outcomes_are_counted_per_family_and_assignor(results, comparisons):
    counts = ("answered", "missed", "missed_maximum", "wasteful", "excess_ppm", "owned_partitions")
    expected = {name: Counter() for name in counts}
    for row in comparisons:
        key = (row["family"], row["mixed"], row["assignor"])
        answered = bool(row["proven"]) and row["ending"] == "ok"
        known = answered and row["owned"] > 0 and row["unnecessary_moves"] is not None
        gap, least = row["makespan_gap"] or 0, row["makespan_optimum"] or 1
        values = (
            *(answered, answered and not row["least_imbalance"], answered and gap > 0),
            *(known and row["unnecessary_moves"] > 0, gap * 1_000_000 // least if answered else 0),
            row["owned"] if known else 0,
        )
        for name, value in zip(counts, values, strict=True):
            expected[name][key] += value
    found = results.outcomes.groupby(["family", "mixed", "assignor"]).sum(numeric_only=True)
    for name in counts:
        assert found[name].to_dict() == expected[name]
    assert sum(expected["missed"].values()) > sum(expected["missed_maximum"].values()) > 10


def test_digests_of_families_are_those_of_the_rows(results, study_directory):
    expected = {}
    for row in stored_rows(study_directory, read_manifest(study_directory)):
        expected.setdefault(row["groups"]["family"], []).append(case_digest(row))
    found = dict(zip(results.families["family"], results.families["sha256"], strict=True))
    assert found == {family: family_digest(digests) for family, digests in expected.items()}


def test_pairs_are_counted_by_both_results(results, counted):
    by_case = {}
    for row in counted:
        by_case.setdefault(row["case"], {})[row["assignor"]] = row
    expected = Counter()
    for rows in by_case.values():
        if len(rows) == 2:
            before, after = rows["roundrobin"], rows["range"]
            difference = None
            if before["owned"] and None not in (
                moves := (after["unnecessary_moves"], before["unnecessary_moves"])
            ):
                difference = moves[0] - moves[1]
            least = (before["least_imbalance"] or False, after["least_imbalance"] or False)
            expected[*least, difference] += 1
    pairs = generated(results.pairs)
    known = pairs.astype({"difference": object}).where(pairs.notna(), None)
    found = Counter()
    for row in known.to_dict("records"):
        found[row["least_before"], row["least_after"], row["difference"]] += row["groups"]
    assert set(results.pairs["before"]) == {"roundrobin"}
    assert found == expected
