"""The driver of librdkafka predicts the assignments of real consumers on its mock cluster.

``MOCK_GROUPS=50`` sets the number of groups. They join at the same time, and one member leaves.
"""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from kassay.experiments.implementations.installation import DRIVERS, installations
from kassay.experiments.implementations.runner import run_until_stable
from kassay.reference import Assignment, Group, Member, Topic
from kassay.reference.model.ownership import rejoin
from tests.installed_library import require_library

pytestmark = [pytest.mark.kafka, pytest.mark.clients]

SOURCE = Path(__file__).with_name("clients") / "mock_cluster.c"
GROUPS = int(os.environ.get("MOCK_GROUPS", "6"))
ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
_AT_ONCE = 10


@pytest.fixture(scope="session")
def mock_cluster(tmp_path_factory):
    _, version = require_library("librdkafka")
    sources = installations() / f"librdkafka@{version}" / "library" / "src"
    program = tmp_path_factory.mktemp("mock") / "mock_cluster"
    command = ["cc", "-w", "-I", sources, "-I", DRIVERS / "c", "-o", program, SOURCE]
    command += [sources / "librdkafka.a", "-lm", "-lpthread", "-ldl", "-lrt"]
    subprocess.run(command, check=True)
    return program


def random_group(number, seed):
    choose = random.Random(seed * 1000 + number)
    topics = {f"g{number}-t{n}": choose.randint(1, 6) for n in range(choose.randint(1, 4))}
    members = [
        {"topics": sorted(choose.sample(sorted(topics), choose.randint(1, len(topics))))}
        for _ in range(choose.randint(2, 4))
    ]
    assignor = ASSIGNORS[number % len(ASSIGNORS)]
    return {"id": f"g{number}", "assignor": assignor, "topics": topics, "members": members}


def observed(step):
    """Return the assignment per member id, and the number of rebalances per member."""
    members = {name.split()[1]: found for name, found in step.items()}
    pairs = {id: [tuple(pair) for pair in found["partitions"]] for id, found in members.items()}
    return Assignment(pairs), [found["rebalances"] for found in members.values()]


def sets(assignment):
    return {member: frozenset(map(tuple, pairs)) for member, pairs in assignment.items()}


def is_stable(group, assignment):
    """Return whether the consumers consumed all partitions before the end of the waiting time."""
    subscribed = {topic for topic, members in group.subscribers().items() if members}
    wanted = sum(topic.partitions for topic in group.topics if topic.name in subscribed)
    return sum(assignment.loads().values()) == wanted


def compare(document, steps):
    """Compare one group. Return the number of compared rebalances."""
    ids = [name.split()[1] for name in steps[0]]
    group = Group(
        topics=tuple(Topic(name=name, partitions=n) for name, n in document["topics"].items()),
        members=tuple(
            Member(id=id, subscription=tuple(member["topics"]))
            for id, member in zip(ids, document["members"], strict=True)
        ),
    )
    name = f"librdkafka:{document['assignor']}"
    found, rebalances = observed(steps[0])
    if not is_stable(group, found):
        return 0
    if set(rebalances) != {1} and document["assignor"] == "cooperative-sticky":
        return 0  # The members did not join at the same time.
    predicted = run_until_stable(group, name).assignment
    assert predicted is not None
    assert sets(predicted) == sets(found), document
    later = rejoin(group, predicted)
    remaining = Group(topics=later.topics, members=later.members[1:])
    found, _ = observed(steps[1])
    if not is_stable(remaining, found):
        return 1
    predicted = run_until_stable(remaining, name).assignment
    assert predicted is not None
    assert sets(predicted) == sets(found), document
    return 2


def test_the_driver_predicts_the_assignments_of_real_consumers(mock_cluster):
    groups = [random_group(number, seed=7) for number in range(GROUPS)]
    compared = 0
    for begin in range(0, GROUPS, _AT_ONCE):
        batch = groups[begin : begin + _AT_ONCE]
        done = subprocess.run(
            [mock_cluster],
            input=json.dumps(batch),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        compared += sum(
            compare(group, steps)
            for group, *steps in zip(batch, *json.loads(done.stdout), strict=True)
        )
    print(f"{compared} rebalances of {GROUPS} groups compared")  # noqa: T201
    assert compared >= GROUPS
