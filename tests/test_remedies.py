"""Tests of the remedies of docs/remedies.md: examples/remedies and benchmarks/remedies.py."""

from collections import Counter
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import remedies, streams_events
from benchmarks.network_shapes import build_group
from kassay import compare, load_groups, violations
from kassay.experiments.implementations.callable_server import load_callable
from kassay.experiments.kinds.streams_forecast import run_application_until_stable
from kassay.experiments.study.families.random_documents import StreamsApplications
from kassay.reference.assignors import assign
from kassay.reference.assignors.streams import AssignmentConfigs, ClientState
from kassay.reference.documents.kind_documents import Kind, TaskId, parse_kind_document
from kassay.reference.model.assignment import movement
from kassay.reference.model.load_metrics import sum_of_squares
from tests import brute_force
from tests.strategies import groups, valid_assignments

FOLDER = Path(__file__).parents[1] / "examples" / "remedies"
GROUPS = {group.id: group for group in load_groups(FOLDER / "groups.jsonl")}
repair = load_callable(f"{FOLDER / 'repair.py'}:repair")


def outcome(group, assignment):
    assert next(violations(group, assignment), None) is None
    return sum_of_squares(assignment.counts().values()), movement(group, assignment)


@given(data=st.data())
def test_repair_without_limits_reaches_the_optimum_from_each_assignment(data):
    group = data.draw(groups())
    repaired, _ = repair(group, data.draw(valid_assignments(group)))
    assert outcome(group, repaired) == brute_force.optimum(group)


@pytest.mark.parametrize("limits", [{"max_transfers": 0}, {"max_transfers": 2}, {"max_chains": 1}])
@given(data=st.data())
def test_limited_repair_is_valid_and_never_worse(limits, data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    repaired, chains = repair(group, assignment, **limits)
    assert outcome(group, repaired) <= outcome(group, assignment)
    assert chains <= limits.get("max_chains", chains)


def chain_of_topics(transfers):
    """Return a group that only a chain of the given number of transfers can improve."""
    sizes = [*[1] * (transfers - 1), 2]
    subscriptions = [[t for t in (i - 1, i) if 0 <= t < transfers] for i in range(transfers + 1)]
    owners = [(t + 1, t, number) for t, size in enumerate(sizes) for number in range(size)]
    return build_group(sizes, subscriptions, owners)


@pytest.mark.parametrize("transfers", [2, 3, 4, 7])
def test_no_fixed_length_of_chains_is_sufficient(transfers):
    group = chain_of_topics(transfers)
    start = assign(group, "sticky")
    shorter, chains = repair(group, start, max_transfers=transfers - 1)
    assert (shorter.counts(), chains) == (start.counts(), 0)
    repaired, chains = repair(group, start, max_transfers=transfers)
    assert (set(repaired.counts().values()), chains) == ({1}, 1)


@pytest.mark.parametrize(
    ("case", "sticky", "uniform", "minimum"),
    [
        ("sticky-imbalance", (5, 0), (3, 0), (3, 0)),
        ("sticky-moves", (3, 1), (3, 1), (3, 0)),
        ("uniform-imbalance", (5, 0), (5, 0), (3, 1)),
        ("uniform-moves", (3, 0), (3, 1), (3, 0)),
        ("three-transfers", (6, 0), (6, 0), (4, 3)),
    ],
)
def test_three_transfers_reach_the_optimum_of_the_documented_groups(case, sticky, uniform, minimum):
    group = GROUPS[case]
    assert brute_force.optimum(group) == minimum
    for assignor, expected in (("sticky", sticky), ("uniform", uniform)):
        assignment = assign(group, assignor)
        assert outcome(group, assignment) == expected
        assert outcome(group, repair(group, assignment, max_transfers=3)[0]) == minimum


@pytest.mark.parametrize(
    "name", ["sticky_two_steps", "sticky_three_steps", "sticky_ten_chains", "uniform_two_steps"]
)
def test_repaired_assignors_run_as_custom_assignors(name):
    comparison = compare(GROUPS["uniform-imbalance"], f"python:{FOLDER / 'repair.py'}:{name}")
    assert comparison.least_imbalance
    assert comparison.unnecessary_moves == 0


def test_a_livelock_is_repaired_from_the_repeated_state():
    (endless,) = [g for g in load_groups(FOLDER.parent / "groups.jsonl") if g.id == "D"]
    repaired = load_callable(f"{FOLDER / 'repair.py'}:sticky_ten_chains")(endless)
    assert outcome(endless, repaired) == (91, 4)


def test_the_benchmark_measures_no_gap_without_limits():
    rows = {(row.assignor, row.remedy): row.sums for row in remedies.measure("neighbours", 30)}
    assert rows["sticky", "none"]["gap"] > 0
    for assignor in remedies.ASSIGNORS:
        assert rows[assignor, "no limit"]["gap"] == 0
        assert rows[assignor, "no limit"]["unnecessary"] == 0


@pytest.mark.parametrize("event", streams_events.EVENTS)
@pytest.mark.parametrize("standbys", [0, 1])
def test_the_remedy_of_high_availability_needs_the_fewest_state_moves(event, standbys):
    family = StreamsApplications(name=event, event=event, standbys=standbys)
    for seed in range(3):
        results = streams_events.measure(family.document(seed), streams_events.ASSIGNORS.values())
        upstream, active, both = (one.event for one in results)
        fewest = results[0].fewest
        assert (
            (active.state_moves, both.state_moves)
            == (fewest, fewest)
            <= (upstream.state_moves,) * 2
        )
        assert both.rebalances <= active.rebalances <= upstream.rebalances


@pytest.mark.parametrize("seed", range(60))
def test_targets_have_the_lowest_imbalance_and_the_fewest_moves_of_all_placements(seed):
    rng = Random(seed)
    tasks = [TaskId(0, number) for number in range(rng.randint(1, 6))]
    clients = [
        ClientState(id, rng.randint(1, 3), {task: rng.choice([0, 0, 50_000]) for task in tasks}, {})
        for id in range(rng.randint(1, 3))
    ]

    def value(placement):
        loads = Counter(placement)
        imbalance = sum(6 * loads[i] ** 2 // client.capacity for i, client in enumerate(clients))
        moves = sum(
            clients[place].lags[task] > 0 and any(client.lags[task] == 0 for client in clients)
            for task, place in zip(tasks, placement, strict=True)
        )
        return imbalance, moves

    load_callable(f"{FOLDER / 'streams.py'}:_place_active")(clients, tasks, AssignmentConfigs())
    found = [next(i for i, one in enumerate(clients) if task in one.active) for task in tasks]
    assert value(found) == min(map(value, product(range(len(clients)), repeat=len(tasks))))


def test_one_move_suffices_after_a_join():
    assign = streams_events.ASSIGNORS["remedy"]
    tasks = {"a": ["0_0", "0_2"], "b": [], "c": ["0_1", "0_3"]}
    document = {
        "kind": "streams",
        "subtopologies": {"0": {"partitions": 4, "stateful": True, "end_offsets": [50_000] * 4}},
        "processes": [
            {"id": f"00000000-0000-0000-0000-00000000000{id}", "threads": 1, "active": active}
            for id, active in tasks.items()
        ],
    }
    event = run_application_until_stable(parse_kind_document(document, kind=Kind.STREAMS), assign)
    assert (event.rebalances, event.state_moves) == (2, 1)
