"""Simulated groups whose members use several client libraries."""

import pytest

from kassay.experiments.simulation.assignor_policies import POLICIES
from kassay.experiments.simulation.run_simulation import simulate
from kassay.experiments.simulation.script import parse_script
from kassay.reference.model.errors import InputError
from tests.installed_library import require_library

SCRIPT = """
topics: {{orders: 12}}
members:
  - {{id: first, topics: [orders], library: {first}}}
  - {{id: other-, count: 3, topics: [orders], library: {others}}}
events:
  - {{at: 60s, do: leave, member: first}}
until: 2m
"""


def mixed(first, others):
    """Return the result of `sticky` with a leader of one library, which leaves."""
    for name in (first, others):
        require_library(name)
    return simulate(
        parse_script(SCRIPT.format(first=first, others=others), "s"), POLICIES["sticky"]
    )


@pytest.mark.libraries
def test_members_keep_partitions_if_the_new_leader_reads_their_user_data():
    result = mixed("kafka-clients", "aiokafka")
    assert [len(rebalance.group.members) for rebalance in result.completed] == [4, 3]
    assert result.moves == 0


@pytest.mark.libraries
def test_members_lose_partitions_if_they_send_no_user_data():
    result = mixed("kafka-clients", "franz-go")
    assert result.moves > 0
    assert all(len(member.owned) == 3 for member in result.completed[-1].group.members)
    assert any("leads generation 2 with franz-go@" in note.text for note in result.notes)


@pytest.mark.libraries
def test_a_leader_that_cannot_decode_user_data_leaves_the_group():
    result = mixed("sarama", "kafka-python")
    failed = [rebalance for rebalance in result.rebalances if rebalance.assignment is None]
    assert len(failed) == 1
    assert any("cannot decode the user data" in note.text for note in result.notes)


@pytest.mark.parametrize("policy", ["uniform", "optimum-eager"])
def test_libraries_require_a_client_assignor(policy):
    script = parse_script(SCRIPT.format(first="sarama", others="sarama"), "s")
    with pytest.raises(InputError, match="require a policy with a client assignor"):
        simulate(script, POLICIES[policy])


def test_an_unknown_library_is_reported_with_its_line():
    with pytest.raises(InputError, match=r"bad.yaml:4: .*unknown library 'nosuch'"):
        parse_script(SCRIPT.format(first="nosuch", others="sarama"), "bad.yaml")
