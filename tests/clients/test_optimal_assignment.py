"""Optimal assignors of consumers: minimum imbalance, then fewest moves, within a time limit."""

import json
import logging
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from kassay.clients import optimal_assignment as module
from kassay.clients.optimal_assignment import optimal_assignment
from kassay.experiments.implementations.client_libraries import installations
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from kassay.reference.documents.json_codec import group_document
from tests.installed_library import require_library

_RUN = """
import importlib, json, sys
package, directory, module = sys.argv[1:]
sys.path.insert(0, directory)
from driver import PythonLibrary
client = importlib.import_module(module)
class Library(PythonLibrary):
    def _new_assignor(self, name):
        cls = client.OptimalAssignor
        return cls() if self._has_instances else type("Own", (cls,), {})
group = json.loads(sys.stdin.read())
optimal = Library(package).assign("sticky", group)
if group["id"] == "D":  # The library's own assignor does not terminate.
    own = sticky = None
else:
    client.optimal_assignment = lambda *_, **__: None
    own = Library(package).assign("sticky", group)
    sticky = PythonLibrary(package).assign("sticky", group)
print(json.dumps([optimal, own, sticky]))
"""


class Cluster:
    def __init__(self, **partitions):
        self.partitions = partitions

    def partitions_for_topic(self, topic):
        return self.partitions.get(topic)


def subscription(*topics, owned=(), generation=-1):
    return SimpleNamespace(subscription=topics, partitions=list(owned), generation=generation)


def test_the_loads_are_balanced_with_few_moves():
    members = {
        "a": subscription("t", owned=[("t", 1), ("t", 0)]),
        "b": subscription("s", "t", owned=[("s", 0)]),
        "c": subscription("s"),
    }
    result = optimal_assignment(Cluster(s={0}, t={0, 1}), members, seconds=20)
    assert {id: sum(len(p) for _, p in lists) for id, lists in result.items()} == dict.fromkeys(
        "abc", 1
    )
    assert result["c"] == [("s", [0])]


def test_a_member_keeps_its_partitions_without_a_generation():
    members = {
        "a": subscription("t", owned=[("t", 2), ("t", 3)]),
        "b": subscription("t", owned=[("t", 0), ("t", 1)]),
    }
    result = optimal_assignment(Cluster(t={0, 1, 2, 3}), members, seconds=20)
    assert result == {"a": [("t", [2, 3])], "b": [("t", [0, 1])]}


def test_unknown_topics_have_no_partitions():
    members = {"a": subscription("gone"), "b": subscription("gone", "t")}
    assert optimal_assignment(Cluster(t={0}), members, seconds=20) == {"a": [], "b": [("t", [0])]}


def test_gaps_in_the_partition_numbers_give_no_optimum(caplog):
    assert optimal_assignment(Cluster(t={0, 2}), {"a": subscription("t")}, seconds=20) is None
    assert "partitions of 't' have gaps: [0, 2]" in caplog.text


def test_an_unproven_assignment_is_not_used(monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(module, "solve", lambda *_, **__: SimpleNamespace(is_optimal=False))
    assert optimal_assignment(Cluster(t={0}), {"a": subscription("t")}, seconds=1.5) is None
    assert "within 1.5 seconds" in caplog.text


@pytest.mark.libraries
@pytest.mark.parametrize("name", ["aiokafka", "kafka-python"])
@pytest.mark.parametrize("key", ["A", "B", "D"])
def test_the_clients_assign_the_optimum_or_the_sticky_assignment(name, key):
    _, version = require_library(name)
    directory = installations() / f"{name}@{version}"
    group = NAMED_GROUPS[key].group
    package = "kafka" if name == "kafka-python" else name
    names = [package, str(directory), f"kassay.clients.{name.replace('-', '_')}"]
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *names],
        input=json.dumps(group_document(group)),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(directory / "packages")},
    )
    assert done.returncode == 0, done.stderr
    assigned, without_optimum, sticky = json.loads(done.stdout)
    assert without_optimum == sticky
    loads = sorted(map(len, assigned.values()))
    assert loads == {"A": [1, 1, 1], "B": [1, 1, 1], "D": [3, 4, 4, 5, 5]}[key]
    owners = Counter(tuple(pair) for pairs in assigned.values() for pair in pairs)
    assert set(owners.values()) == {1}
