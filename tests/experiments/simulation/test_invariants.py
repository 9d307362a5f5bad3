"""Invariants of groups over random scripts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kassay.experiments.simulation.assignor_policies import POLICIES
from kassay.experiments.simulation.run_simulation import Simulation, simulate
from kassay.experiments.simulation.script import Action, MemberPlan, Script, ScriptEvent
from tests.experiments.simulation.random_scripts import QUIET, random_script

_POLICIES = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "server-range")
seeds = st.integers(0, 2**31)


def _with_final_member(script: Script) -> Script:
    """Let a member join that consumes all topics, so that the group does not end empty."""
    member = MemberPlan(id="final", topics=tuple(topic.name for topic in script.topics))
    join = ScriptEvent(
        at=script.until - QUIET, action=Action.JOIN, member="final", new_member=member
    )
    return replace(script, events=(*script.events, join))


@pytest.mark.parametrize("policy", _POLICIES)
@given(seed=seeds)
@settings(max_examples=settings.default.max_examples // 3)
def test_invariants_hold_over_random_scripts(policy: str, seed: int) -> None:
    # Two simultaneous consumers of a partition raise OverlapError, and a transition of the
    # group's state that Kafka does not have raises InternalError.
    simulation = Simulation(_with_final_member(random_script(seed)), POLICIES[policy])
    result = simulation.run()

    generations = [rebalance.generation for rebalance in result.completed]
    assert generations == sorted(set(generations)), "generations increase"

    for rebalance in result.completed:
        assert rebalance.assignment is not None
        owners = Counter(tp for tps in rebalance.assignment.values() for tp in tps)
        assert set(owners.values()) <= {1}, "each partition has at most one assignee"

    environment = simulation.environment
    assert simulation.broker.state == "Stable"
    owned = [tp for one in simulation.consumers.values() if one.is_up for tp in one.owned]
    partitions = sum(topic.partitions for topic in environment.topics.values())
    assert len(set(owned)) == len(owned) == partitions, "all partitions are consumed"
    assert result.completed[-1].complete


@pytest.mark.parametrize("policy", _POLICIES)
@given(seed=seeds)
@settings(deadline=None, max_examples=5)
def test_equal_scripts_and_seeds_give_equal_results(policy: str, seed: int) -> None:
    script = random_script(seed)
    assert simulate(script, POLICIES[policy]) == simulate(script, POLICIES[policy])
