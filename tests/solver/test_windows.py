"""Groups with several windows: optimal values, bounds, certificates and constraints."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from kassay.reference.documents.json_codec import group_document, group_fingerprint, parse_group
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Member, Topic, Windows
from kassay.reference.model.load_metrics import Measure, imbalance, load_profiles
from kassay.solver.capacity_planning import Resizing, members_needed
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.certificate.documents import certificate_document, parse_certificate
from kassay.solver.certify import certify
from kassay.solver.constraints import Capacity, MaxMoves, MaxPartitions
from kassay.solver.frontier import frontier
from kassay.solver.greedy_placements import keep_owned
from kassay.solver.limits import SearchLimits, limited_steps
from kassay.solver.objective import Imbalance, Movement, Tolerance, is_preference
from kassay.solver.problem import build_problem
from kassay.solver.search.overload_repair import LoadLimit, WindowRepair
from kassay.solver.search.overload_searches import load_limits
from kassay.solver.solve import solve
from tests.solver.window_cases import WindowCase, optimum, random_case, value_in_windows
from tests.stored_cases import stored_cases
from tests.tiers import short_and_long

MAKESPAN_AND_MOVES = (Imbalance(Measure.MAKESPAN), Movement())


def check_case(case: WindowCase, method: str) -> None:
    """Compare a solution and its certificate with the comparison of all assignments."""
    found = solve(case.group, levels=case.levels, constraints=case.rules, method=method)
    minima = optimum(case)
    if minima is None:
        assert found.assignment is None
        assert found.conflict
        return
    place = {tuple(tp): member for member, tps in found.assignment.items() for tp in tps}
    for level, reached, minimum in zip(case.levels, found.levels, minima, strict=True):
        assert reached.value == value_in_windows(case.group, level)(place)
        if not is_preference(level):
            assert reached.bound <= minimum
            assert reached.value <= level.tolerance.limit(minimum)
    proof = certify(case.group, found, constraints=case.rules)
    assert list(certificate_errors(case.group, found.assignment, proof)) == []
    parsed = parse_certificate(certificate_document(proof))
    assert list(certificate_errors(case.group, found.assignment, parsed)) == []


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_values_and_bounds_agree_with_all_assignments(first):
    for seed in range(first, first + 10):
        check_case(random_case(seed), "auto")


@pytest.mark.parametrize("first", short_and_long(20_010, 20_000, 20_020, 20_030))
def test_searches_without_enumeration_agree_with_all_assignments(first):
    for seed in range(first, first + 10):
        check_case(random_case(seed), "cp-sat")


def test_bounds_on_moves_hold_within_the_tolerance_of_the_minimum_peak():
    case = random_case(900_467)  # its peak is 104, and the bound of the searches 95
    found = solve(case.group, levels=case.levels, constraints=case.rules, method="cp-sat")
    minima = optimum(case)
    assert minima == [104, 37]
    assert all(level.bound <= best for level, best in zip(found.levels, minima, strict=True))


def test_a_single_window_is_the_model_with_one_weight():
    for seed in range(60):
        case = random_case(seed, windows=1)
        assert case.group.window_count == 1
        check_case(case, "auto")


def weighted_group(seed: int, *, partitions: int, members: int = 3, windows: int) -> Group:
    """Return a group with random profiles, and the current owners of its partitions."""
    rng = Random(seed)
    names = [f"m{index}" for index in range(members)]
    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for number in range(partitions):
        owned[rng.choice(names)].append(("t", number))
    table = [[rng.randint(0, 40) for _ in range(windows)] for _ in range(partitions)]
    topic = Topic("t", partitions, profiles=tuple(map(tuple, table)))
    members_of = (Member(name, ("t",), owned=owned[name], generation=1) for name in names)
    return Group((topic,), tuple(members_of))


@pytest.mark.parametrize("seed", range(8))
def test_copies_of_one_window_change_nothing(seed):
    rng = Random(seed)
    group = weighted_group(seed, partitions=20, members=4, windows=1)
    weights = group.topics[0].weights
    profiles = tuple((weight, 0, weight, rng.randint(0, weight)) for weight in weights)
    copies = replace(group, topics=(Topic("t", 20, profiles=profiles),))
    one, several = (solve(each, levels=MAKESPAN_AND_MOVES) for each in (group, copies))
    assert [level.value for level in several.levels] == [level.value for level in one.levels]


def test_a_large_group_is_within_one_percent_of_the_bound_with_little_work():
    rng = np.random.default_rng(0)
    mean = rng.lognormal(3, 0.6, 400)[:, None] * (
        1.2 + np.cos((np.arange(168) - rng.normal(14, 3, 400)[:, None]) * np.pi / 12)
    )
    topic = Topic("t", 400, profiles=tuple(map(tuple, rng.poisson(mean).tolist())))
    group = Group((topic,), tuple(Member(f"m{at}", ("t",)) for at in range(20)))
    levels = (Imbalance(Measure.MAKESPAN, Tolerance(relative=0.01)),)
    found = solve(group, levels=levels, limits=SearchLimits(work=1))
    assert found.is_optimal
    (claim,) = certify(group, found).claims
    (window,) = claim.windows
    totals = [sum(column) for column in zip(*topic.profiles, strict=True)]
    assert claim.bound == -(-totals[window] // 20) == -(-max(totals) // 20)


def test_a_peak_that_few_changes_reach_is_within_two_percent_of_the_bound():
    group = weighted_group(3, partitions=24, members=4, windows=60)
    found = solve(group, levels=(Imbalance(Measure.MAKESPAN, Tolerance(relative=0.02)),))
    assert found.is_optimal


@pytest.mark.parametrize("seed", range(4))
def test_the_tabu_search_alone_finds_the_fewest_moves_of_small_groups(seed, monkeypatch):
    group = weighted_group(seed, partitions=8, members=3, windows=40)
    rules = [MaxPartitions(3)] if seed % 2 else []
    peak, moves = solve(group, levels=MAKESPAN_AND_MOVES, constraints=rules).levels
    problem = build_problem(group)
    limits = load_limits(problem, [(MAKESPAN_AND_MOVES[0], peak.value)])
    if rules:
        members, ones = np.arange(3), np.ones(8, dtype=np.int64)
        limits.append(LoadLimit(members, np.full(3, 3), ones))
    # Annealing changes nothing, so that only the tabu search can find a placement.
    monkeypatch.setattr(WindowRepair, "_make_change", lambda *_: None)
    found = [
        WindowRepair(problem, limits, np.random.default_rng(seed)).run(
            keep_owned(problem),
            np.ones(8, dtype=np.int64),
            rounds=9,
            may_continue=limited_steps(9_000),
            enough=moves.bound,
        )
        for _ in range(2)
    ]
    assert np.array_equal(found[0], found[1])
    assert np.count_nonzero(found[0] != problem.owner) == moves.value
    assert problem.load_profiles(found[0]).max() <= peak.value
    assert not rules or max(np.bincount(found[0])) <= 3


SMALL = Group(
    (Topic("t", 3, profiles=((5, 0), (5, 1), (5, 9))),), (Member("a", ("t",)), Member("b", ("t",)))
)


def test_forged_windows_are_refused():
    found = solve(SMALL, levels=[Imbalance(Measure.MAKESPAN)])
    proof = certify(SMALL, found)
    (claim,) = proof.claims
    assert claim.windows == (0,)
    forgeries = [replace(claim, windows=windows) for windows in [(1,), (5,), (-2,), (0, 0), (0, 1)]]
    for forged in (*forgeries, replace(claim, value=9, bound=11)):
        certificate = replace(proof, claims=(forged,))
        assert list(certificate_errors(SMALL, found.assignment, certificate))


def test_capacities_of_windows_restrict_the_assignment():
    group = replace(SMALL, members=(Member("a", ("t",), capacity=(15, 1)), Member("b", ("t",))))
    found = solve(group, constraints=[Capacity(5, "b")])
    assert found.conflict
    found = solve(group, constraints=[Capacity(9, "b", window=1)])
    assert load_profiles(group, found.assignment)[0][1] <= 1


def test_capacities_make_resources_comparable():
    topic = Topic("t", 4, profiles=((9, 1), (9, 1), (1, 5), (1, 5)))
    group = Group((topic,), (Member("a", ("t",)), Member("b", ("t",))))
    uneven = Assignment({"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]})
    relative = replace(group, windows=Windows(names=("records", "bytes"), capacities=(100, 10)))
    assert imbalance(group, uneven, measure=Measure.MAKESPAN) == 18
    assert imbalance(relative, uneven, measure=Measure.MAKESPAN) == 100
    assert solve(relative, levels=MAKESPAN_AND_MOVES).levels[0].value == 60


def test_other_measures_are_errors():
    with pytest.raises(UsageError, match="require the measure makespan or sum_of_squares"):
        solve(SMALL, levels=["leximax"])


def test_documents_keep_profiles_and_windows():
    document = {
        "topics": {"t": {"partitions": 2, "weights": [[1, 2], [3, 4]]}},
        "members": [{"id": "a", "topics": ["t"], "capacity": [5, 6]}],
        "windows": {"names": ["00:00", "01:00"], "seconds": 3600},
    }
    group = parse_group(document)
    assert group_document(group) == document
    other = replace(group, topics=(Topic("t", 2, profiles=((1, 2), (4, 3))),))
    assert group_fingerprint(other) != group_fingerprint(group)


@pytest.mark.parametrize(("changes", "message"), stored_cases("invalid_profiles"))
def test_invalid_profiles_are_errors(changes, message):
    document = {
        "topics": {"t": {"partitions": 2} | changes},
        "members": [],
        "windows": {"names": ["00:00", "01:00"]},
    }
    with pytest.raises(InputError, match=message):
        parse_group(document)


@pytest.mark.parametrize("windows", [{"seconds": 0}, {"capacities": [1, 0]}])
def test_errors_about_windows_name_the_document(windows):
    document = {"topics": {"t": 1}, "members": [], "windows": windows}
    with pytest.raises(InputError, match=r"group.json:1: windows: \w+ must be at least 1, got 0"):
        parse_group(document, where="group.json:1")


def test_topics_with_different_numbers_of_windows_are_an_error():
    with pytest.raises(InputError, match=r"topic 'u': .* one entry per window \(2\), got 1"):
        Group((*SMALL.topics, Topic("u", 1, weights=(3,))), ())


@pytest.mark.parametrize("seed", range(3))
def test_the_frontier_agrees_with_limits_on_moves(seed):
    group = weighted_group(seed, partitions=9, members=3, windows=3)
    points = frontier(group, measure=Measure.MAKESPAN).points
    assert points
    for point in points:
        rules = [MaxMoves(point.movement.value)]
        (level,) = solve(group, levels=[Imbalance(Measure.MAKESPAN)], constraints=rules).levels
        assert point.imbalance.value == level.value


def test_the_number_of_members_depends_on_the_peak():
    topic = Topic("t", 4, profiles=((8, 0), (8, 0), (0, 8), (0, 8)))
    group = Group((topic,), (Member("a", ("t",)), Member("b", ("t",))))
    resizing = Resizing.of(group)
    assert members_needed(resizing, makespan=8).needed.value == 2
    assert members_needed(resizing, makespan=7).reason == "t-0 alone has weight 8"
