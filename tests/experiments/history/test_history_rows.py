"""Hindsight optima per group of a history."""

from __future__ import annotations

import json
from dataclasses import replace

from kassay import Group
from kassay.experiments.history import recorded_rebalances
from kassay.experiments.history.recorded_rebalances import hindsight_rows
from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import assignment_document, group_document
from kassay.reference.model.assignment import rejoin
from kassay.solver.limits import SearchLimits
from tests.notation import group as small_group
from tests.notation import with_instance_ids


def group(*members: str, static: int = 0) -> Group:
    found = small_group("t:6", **{f"{one}_{static}" if static else one: "t" for one in members})
    ids = {f"{one}-{static}": one for one in members} if static else {}
    return replace(with_instance_ids(found, **ids), id="g/1")


def recorded(groups, assignor, *, unknown=()):
    """Return the rows of a group that uses an assignor, with recorded owners."""
    rows, past = [], None
    for number, one in enumerate(groups):
        current = one if past is None else rejoin(one, past)
        past = assign(current, assignor)
        rows.append(
            {
                "group": "g",
                "incarnation": 0,
                "unknown": "records are missing" if number in unknown else None,
                "document": json.dumps(group_document(current)),
                "assigned": json.dumps({"assignment": assignment_document(past)}),
            }
        )
    return rows


RESTART = [group("a", "b", "c"), group("a", "b"), group("a", "b", "c"), group("b", "c")]


def summary(rows):
    [row] = hindsight_rows(rows, limits=SearchLimits(time=10))
    return row


def test_sticky_makes_the_fewest_moves_of_a_restart():
    assert summary(recorded(RESTART, "sticky")) == {
        "group": "g",
        "hindsight_rebalances": 4,
        "moves_made": 2,
        "fewest_at_each": 2,
        "hindsight": 2,
        "hindsight_bound": 2,
    }


def test_unknown_owners_start_a_new_sequence_from_the_recorded_owners():
    row = summary(recorded(RESTART, "sticky", unknown={1}))
    assert row["hindsight_rebalances"] == 3
    assert row["moves_made"] == row["hindsight"] == 2


def test_long_histories_are_split(monkeypatch):
    monkeypatch.setattr(recorded_rebalances, "_MAX_REBALANCES", 2)
    row = summary(recorded(RESTART, "roundrobin"))
    assert row["hindsight_rebalances"] == 4
    assert row["hindsight"] == row["hindsight_bound"] <= row["moves_made"]


def test_a_static_member_keeps_its_partitions_under_a_new_id():
    before, after = group("a", "b", static=1), group("a", "b", static=2)
    past = assign(before, "sticky")
    renamed = {name.replace("-1", "-2"): partitions for name, partitions in past.items()}
    current = rejoin(after, renamed)
    rows = [
        {
            "group": "g",
            "incarnation": 0,
            "unknown": None,
            "document": json.dumps(group_document(one)),
            "assigned": json.dumps({"assignment": {k: [list(tp) for tp in v] for k, v in made}}),
        }
        for one, made in ((before, past.items()), (current, renamed.items()))
    ]
    row = summary(rows)
    assert (row["moves_made"], row["hindsight"]) == (0, 0)
