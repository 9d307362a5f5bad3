"""Groups with consumers of several client libraries: the leader's library assigns.

In each group, consumers of all libraries with the assignor join one after the other, and one
library leads. Its driver is run with the owned partitions of some libraries only. The set of
libraries with which it predicts most rebalances is the set of libraries that the leader reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from kassay.experiments.implementations.client_libraries import repetitions_of
from kassay.experiments.sources.recognise_library import recognise_library
from kassay.reference.model.group import NO_GENERATION
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.client_groups import ClientGroup, RunningClients, require_libraries
from tests.conformance.client_rebalances import (
    ObservedRebalance,
    observed_rebalances,
    predicts,
    unstable_groups,
)

pytestmark = [pytest.mark.kafka, pytest.mark.clients]

LIBRARIES = {
    "range": ("java", "librdkafka", "franz-go", "sarama", "kafka-python", "aiokafka"),
    "roundrobin": ("java", "librdkafka", "franz-go", "sarama", "aiokafka"),
    "sticky": ("java", "franz-go", "sarama", "aiokafka", "kafka-python"),
    "cooperative-sticky": ("java", "librdkafka", "franz-go", "sarama", "kafka-python"),
}
"""Libraries with each assignor, except roundrobin of kafka-python and those of kafka-go.

roundrobin of kafka-python fails on mixed subscriptions. Java fails on subscriptions of kafka-go.
"""
TOPICS = {"a": 11, "b": 7}
SUBSCRIPTIONS = tuple(tuple(topics) for topics in ("ab", "ab", "a", "ab", "b", "ab", "ab"))
SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
_RUNS = 60
_STABLE_SECONDS = 60.0
_MIN_SHARE = 0.6
"""Share of rebalances that a driver must predict.

The results of the Go libraries vary, and the driver of franz-go sends more user data than
kafka-python.
"""
DOCS = Path(__file__).parents[2] / "docs" / "results" / "clients.md"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    require_libraries(*LIBRARIES["range"])
    with running_cluster(heap_mib=384, settings=SETTINGS) as cluster:
        with administrator(cluster.bootstrap) as admin:
            admin.create_topics(TOPICS)
        yield cluster.bootstrap


def library_of(observed: ObservedRebalance, member: str) -> str:
    found = recognise_library(observed.clients[member])
    assert found is not None, observed.clients[member]
    return found


def is_predicted(observed: ObservedRebalance, understood: Collection[str]) -> bool:
    """Return whether the driver of the leader predicts a rebalance.

    It gets the owned partitions of the members whose library is ``understood``.
    """
    library = library_of(observed, observed.leader)
    name = f"{'kafka-clients' if library == 'java' else library}:{observed.assignor}"
    members = tuple(
        member
        if library_of(observed, member.id) in understood
        else replace(member, owned=NO_PARTITIONS, generation=NO_GENERATION)
        for member in observed.group.members
    )
    complete = replace(observed, group=replace(observed.group, members=members))
    groups = (complete.group, complete.without_unassigned_topics())
    runs = 1 if repetitions_of(name) == 1 else _RUNS
    return any(predicts(name, group, observed.assignment, runs=runs) for group in groups)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_the_driver_of_each_leader_predicts_a_group_of_several_libraries(
    assignor: str, bootstrap: str
) -> None:
    names = LIBRARIES[assignor]
    clients = RunningClients(ClientGroup(library="mixed", assignor=assignor), bootstrap, TOPICS)
    try:
        for number, library in enumerate(names):
            clients.join(number, SUBSCRIPTIONS[number], library=library)
        assert unstable_groups(bootstrap, [clients]) == []
        for number in range(len(names) - 1):
            clients.leave(number)
            assert unstable_groups(bootstrap, [clients]) == []
    finally:
        clients.close()
    observed = observed_rebalances(bootstrap, TOPICS)[clients.group.name]
    wrong = [each for each in observed if not is_predicted(each, names)]
    sizes = {len({library_of(each, id) for id in each.clients}) for each in observed}
    leaders = sorted({library_of(each, each.leader) for each in observed})
    print(f"{assignor}: {len(observed)} rebalances, leaders {', '.join(leaders)}")  # noqa: T201
    assert not wrong, [(library_of(each, each.leader), each) for each in wrong]
    assert max(sizes) == len(names)


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_leaders_read_the_user_data_of_the_documented_libraries(
    assignor: str, bootstrap: str
) -> None:
    names = LIBRARIES[assignor]
    running = [
        RunningClients(ClientGroup(library=name, assignor=assignor), bootstrap, TOPICS)
        for name in names
    ]
    with ExitStack() as stack:
        for clients in running:
            stack.callback(clients.close)
        # Two members of the last library: only one would get all its unknown partitions back.
        for number in range(len(names) + 2):
            for leader, clients in zip(names, running, strict=True):
                library = (leader, *names, names[-1])[number]
                clients.join(number, SUBSCRIPTIONS[number], library=library)
            unstable_groups(bootstrap, running, seconds=_STABLE_SECONDS)
        for number in (1, 2):
            for clients in running:
                clients.leave(number)
            unstable_groups(bootstrap, running, seconds=_STABLE_SECONDS)
    observed = observed_rebalances(bootstrap, TOPICS)
    table = {
        leader: understood_libraries(leader, observed[clients.group.name])
        for leader, clients in zip(names, running, strict=True)
    }
    documented = documented_answers(assignor)
    for leader in names:
        for name, answer in zip(names, table[leader], strict=True):
            expected = documented[leader][name]
            assert answer == expected or "–" in (answer, expected), (leader, name)


def documented_answers(assignor: str) -> dict[str, dict[str, str]]:
    """Return the table of an assignor in the documentation, by leader and library."""
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    begin = next(n for n, line in enumerate(lines) if f"leader of `{assignor}`" in line)
    _, *names = (cell.strip() for cell in lines[begin].strip("| ").split("|"))
    answers = {}
    for line in lines[begin + 2 : begin + 2 + len(names)]:
        leader, *cells = (cell.strip() for cell in line.strip("| ").split("|"))
        answers[leader] = dict(zip(names, cells, strict=True))
    return answers


def understood_libraries(leader: str, rebalances: Sequence[ObservedRebalance]) -> list[str]:
    """Return, for each library, whether the leader reads the owned partitions of its members.

    The answer is a dash if the members send none, or if it makes no difference. It is "fails" if
    the leader completes no rebalance with a member of the library.
    """
    led = [each for each in rebalances if library_of(each, each.leader) == leader]
    joined = {library_of(each, id) for each in led for id in each.clients}
    senders = {
        library_of(each, member.id) for each in led for member in each.group.members if member.owned
    }
    predicted = {
        frozenset(subset): sum(is_predicted(each, subset) for each in led)
        for size in range(len(senders), -1, -1)
        for subset in combinations(sorted(senders), size)
    }
    best = max(predicted.values())
    assert best >= _MIN_SHARE * len(led)
    answers = []
    for name in LIBRARIES[rebalances[0].assignor]:
        found = {name in subset for subset, count in predicted.items() if count == best}
        if name not in joined:
            answers.append("fails")
        elif name not in senders or len(found) > 1:
            answers.append("–")
        else:
            answers.append("yes" if found == {True} else "no")
    print(f"{leader}: {best} of {len(led)} rebalances: {' | '.join(answers)}")  # noqa: T201
    return answers
