"""Ranks and values of a survey, compared with brute force."""

import os
import threading
from dataclasses import replace
from fractions import Fraction

import pytest

from kassay import Group, Member, Topic
from kassay.experiments.planning import survey as survey_module
from kassay.experiments.planning.survey import (
    MoveHistory,
    Survey,
    SurveyedGroup,
    UnsurveyedGroup,
    survey_group,
    survey_groups,
)
from kassay.reference.model.group import GroupStatus
from kassay.solver.limits import SearchLimits
from tests.brute_force import loads_of, optimum, owners, partitions_to_place, reachable
from tests.log_normal_groups import log_normal_group
from tests.random_groups import random_group
from tests.tiers import short_and_long


def owned_group(seed: int) -> Group:
    """Return a random group in which each consumed partition has an owner."""
    group = random_group(seed)
    consumers = {
        topic.name: [member.id for member in group.members if topic.name in member.subscription]
        for topic in group.topics
    }
    owned: dict[str, list[tuple[str, int]]] = {member.id: [] for member in group.members}
    known = owners(group)
    for tp in partitions_to_place(group):
        owned[known.get(tp, consumers[tp[0]][(seed + tp[1]) % len(consumers[tp[0]])])].append(tp)
    members = tuple(replace(m, owned=owned[m.id], generation=1) for m in group.members)
    return replace(group, id=f"g{seed}", members=members)


def expected(group: Group) -> tuple[int, int, int, int, int, int, int]:
    """Return maximum load and spread before and after, idle and hot members, and moves."""
    before = loads_of(group, owners(group))
    least, moves = optimum(group)
    after = next(loads for loads in reachable(group) if sum(x * x for x in loads) == least)
    return (
        *(max(before, default=0), max(after, default=0)),
        *(max(before, default=0) - min(before, default=0),),
        max(after, default=0) - min(after, default=0),
        len(group.members) - sum(load > 0 for load in before),
        sum(load > max(after, default=0) for load in before),
        moves,
    )


@pytest.mark.parametrize("number_of_groups", short_and_long(150, 400))
def test_values_and_ranks_agree_with_brute_force(number_of_groups):
    groups = [owned_group(seed) for seed in range(number_of_groups)]
    known = {group.id: expected(group) for group in groups}
    survey = Survey.of(survey_groups(groups))
    assert not survey.unsurveyed
    for found in survey.groups:
        before, after = found.current, found.planned
        assert known[found.id] == (
            *(before.makespan, after.makespan, before.spread, after.spread, before.idle),
            *(found.hot, found.moves.value),
        )
        assert found.moves.gap == found.makespan.gap == 0

    def gain(id):
        before, after, spread, planned_spread, *_ = known[id]
        scale = after or 1
        return Fraction(before - after, scale), Fraction(spread - planned_spread, scale)

    gains = [gain(found.id) for found in survey.groups]
    assert gains == sorted(gains, reverse=True)
    assert len(set(gains)) > 10


def test_unnecessary_moves_of_the_history_rank_groups_with_equal_loads():
    groups = [replace(owned_group(1), id=id) for id in "abc"]
    histories = {
        "b": MoveHistory(rebalances=3, moves=9, unnecessary_moves=5),
        "c": MoveHistory(rebalances=3, moves=9, unnecessary_moves=7),
    }
    survey = Survey.of(survey_groups(groups, histories=histories))
    assert [group.id for group in survey.groups] == ["c", "b", "a"]
    assert survey.totals()["unnecessary_moves"] == 12
    assert survey.groups[2].record()["history"] is None


def test_a_weighted_group_without_a_proof_has_a_limit_of_its_gap():
    result = survey_group(log_normal_group(), limits=SearchLimits(time=0))
    assert isinstance(result, SurveyedGroup)
    assert result.makespan.bound < result.makespan.value
    assert 0 < result.gap < result.gap_limit


def test_a_rebalancing_group_without_owners_has_no_result():
    group = replace(random_group(3), id="r", status=GroupStatus(state="PreparingRebalance"))
    members = tuple(replace(member, owned=()) for member in group.members)
    result = survey_group(replace(group, members=members))
    assert isinstance(result, UnsurveyedGroup)
    assert "rebalancing" in result.reason


def _end_process_of_killer(group, history, limits, seed):
    if group.id == "killer":
        os._exit(1)
    return survey_group(group, history=history, limits=limits, seed=seed)


@pytest.fixture
def _two_processes(monkeypatch):
    """Survey also small groups in child processes."""
    monkeypatch.setattr(survey_module, "_MIN_GROUPS_PER_PROCESS", 1)
    monkeypatch.setattr(survey_module, "_LIGHT_PARTITIONS", -1)


@pytest.mark.usefixtures("_two_processes")
def test_a_group_that_ends_its_process_does_not_end_the_survey(monkeypatch):
    monkeypatch.setattr(survey_module, "survey_group", _end_process_of_killer)
    groups = [owned_group(seed) for seed in range(20)]
    groups[7] = replace(groups[7], id="killer")
    survey = Survey.of(survey_groups(groups, processes=2))
    assert [failed.id for failed in survey.unsurveyed] == ["killer"]
    assert "process" in survey.unsurveyed[0].reason
    assert len(survey.groups) == 19


@pytest.mark.usefixtures("_two_processes")
def test_balanced_groups_of_other_processes_have_nothing_to_do() -> None:
    members = (Member("a", ("t",), owned=(("t", 0),)), Member("b", ("t",), owned=(("t", 1),)))
    group = Group((Topic("t", 2),), members)
    texts = [one.cause_text for one in survey_groups([group] * 2, processes=2)]
    assert texts == ["", ""]


def test_a_stopped_survey_yields_no_further_group():
    stop = threading.Event()
    found = []
    for result in survey_groups(
        [owned_group(seed) for seed in range(5)], limits=SearchLimits(stop=stop)
    ):
        found.append(result)
        stop.set()
    assert len(found) == 1
