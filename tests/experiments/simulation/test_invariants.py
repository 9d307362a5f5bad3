"""Random scripts never break what a group promises, whatever happens to it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kassay.experiments.simulation.policies import POLICIES
from kassay.experiments.simulation.simulation import Simulation
from tests.experiments.simulation.random_scripts import random_script

_POLICIES = (
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "uniform",
    "server-range",
)
seeds = st.integers(0, 2**31)


def _wanted(world: Simulation) -> set[str]:
    alive = [c for c in world.consumers.values() if c.is_up]
    return {topic for consumer in alive for topic in consumer.plan.topics}


@pytest.mark.parametrize("policy", _POLICIES)
@given(seed=seeds)
@settings(deadline=None, max_examples=25)
def test_invariants_hold_over_random_scripts(policy: str, seed: int) -> None:
    # Two members that consume one partition at once raise OverlapError here, and a change
    # of state that is not in the table IllegalTransitionError.
    world = Simulation(random_script(seed), POLICIES[policy])
    history = world.run()

    generations = [step.generation for step in history.settled]
    assert generations == sorted(set(generations)), "generations only rise"

    for step in history.settled:
        assert step.assignment is not None
        owners = Counter(tp for tps in step.assignment.values() for tp in tps)
        assert not owners or max(owners.values()) == 1, "one owner of a partition a generation"

    wanted = _wanted(world)
    if wanted:
        assert world.broker.state == "Stable"
        assert world.ledger.unowned(wanted) == [], "every subscribed partition is consumed"
        assert history.settled[-1].complete


@pytest.mark.parametrize("policy", _POLICIES)
@given(seed=seeds)
@settings(deadline=None, max_examples=5)
def test_the_same_script_and_seed_give_the_same_history(policy: str, seed: int) -> None:
    script = random_script(seed)
    first = Simulation(script, POLICIES[policy]).run()
    second = Simulation(script, POLICIES[policy]).run()
    assert first == second
