"""The remedy for high availability in Java: on random problems, and in a real application."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Producer

from kassay.experiments.implementations.callable_server import load_callable
from kassay.reference.documents.kind_documents import Kind, parse_kind_document
from tests.conformance import jars
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.kind_problems import random_application
from tests.conformance.kind_processes import StreamsApplication, running_java, running_streams

pytestmark = pytest.mark.kafka

CLASS = "FewestMovesTaskAssignor"
REMEDIES = Path(__file__).parents[2] / "examples" / "remedies"
PROBLEMS = int(os.environ.get("KASSAY_REMEDY_PROBLEMS", "2000"))
TASKS = 6
STABLE_SECONDS = 240.0
SETTINGS = {
    "task.assignor.class": CLASS,
    "acceptable.recovery.lag": "0",
    "probing.rebalance.interval.ms": "60000",  # the minimum
    "commit.interval.ms": "100",
    "session.timeout.ms": "10000",
}


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the compiled assignor and its driver."""
    directory = tmp_path_factory.mktemp("classes")
    javac = shutil.which("javac", path=str(Path(jars.java()).resolve().parent))
    if javac is None:
        pytest.fail("no javac beside java; the test needs a JDK")
    sources = [
        REMEDIES / f"{CLASS}.java",
        Path(__file__).with_name("clients") / "TaskAssignorDriver.java",
    ]
    classpath = os.pathsep.join(jars.classpath("kinds"))
    command = [javac, "-Xlint:all", "-Werror", "-d", directory, "-cp", classpath, *sources]
    subprocess.run(command, check=True, timeout=300)
    return directory


def test_the_java_class_equals_the_python_module(classes: Path) -> None:
    assign = load_callable(f"{REMEDIES / 'streams.py'}:assign")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with running_java(["TaskAssignorDriver", CLASS], classes=classes, **pipes) as process:
        for seed in range(PROBLEMS):
            problem = random_application(Random(seed))
            problem["config"].pop("rack_aware_assignment_tags")
            process.stdin.write(json.dumps(problem) + "\n")
            process.stdin.flush()
            found = json.loads(process.stdout.readline())
            assert found.pop("error") == "NONE", problem
            expected = assign(parse_kind_document(problem, kind=Kind.STREAMS))  # type: ignore[arg-type]
            assert found == expected, problem


def stateful_tasks(applications: list[StreamsApplication]) -> list[frozenset[str]]:
    return [
        frozenset(task for tasks in one.tasks().values() for task in tasks if task[0] == "0")
        for one in applications
    ]


def await_even(applications: list[StreamsApplication]) -> list[frozenset[str]]:
    """Wait until the stateful tasks of the processes are even."""
    deadline = time.monotonic() + STABLE_SECONDS
    found: list[frozenset[str]] = []
    while time.monotonic() < deadline:
        found = stateful_tasks(applications)
        if {len(tasks) for tasks in found} == {TASKS // len(applications)}:
            return found
        time.sleep(0.5)
    raise TimeoutError(f"stateful tasks per process: {found}")


def test_a_process_that_joins_an_application_receives_two_of_six_tasks(
    classes: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        # The first two processes join before the first assignment.
        wait = {"group.initial.rebalance.delay.ms": "15000"}
        cluster = stack.enter_context(running_cluster(heap_mib=384, settings=wait))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics({"orders": TASKS, "lowrate": TASKS})
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for number in range(100 * TASKS):
            producer.produce("orders", partition=number % TASKS, key=str(number), value="x")
        producer.flush()
        start = partial(
            running_streams, cluster.bootstrap, "app", "classic", settings=SETTINGS, classes=classes
        )
        applications = [stack.enter_context(start(tmp_path / name)) for name in ("a", "b")]
        before = await_even(applications)
        applications.append(stack.enter_context(start(tmp_path / "c")))
        after = await_even(applications)
        assert [len(own & kept) for own, kept in zip(before, after[:2], strict=True)] == [2, 2]
