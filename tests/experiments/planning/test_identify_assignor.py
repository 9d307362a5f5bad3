"""The assignor of a group is stated with the client library or broker that implements it."""

import pytest

from kassay.experiments.implementations import run_assignor
from kassay.experiments.planning import identify_assignor as identify_assignor_module
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.render_plans import TEXT, plan_document, render_plan
from kassay.reference.assignors import AssignorResult
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Client, Group, GroupStatus, Member, Topic

JAVA_RESULTS = "The results of range in this output are those of the Java client"


def group(*libraries: str | None, assignor: str | None = "range", **status: str) -> Group:
    """Return a group with one member per library; the first member owns all partitions."""
    members = [
        Member(
            id=f"m{number}",
            subscription=("t",),
            owned=() if number else [("t", n) for n in range(6)],
            client=Client(library=library),
        )
        for number, library in enumerate(libraries)
    ]
    return Group(
        id="g",
        topics=(Topic(name="t", partitions=6),),
        members=tuple(members),
        status=GroupStatus(assignor=assignor, **status),
    )


@pytest.mark.parametrize(
    ("libraries", "sentence"),
    [
        (("java", "java"), "The group runs range of the Java client."),
        (("sarama",), f"The group runs range of sarama. {JAVA_RESULTS}; sarama can assign"),
        ((None, "librdkafka"), f"The group runs range of librdkafka. {JAVA_RESULTS}; librdkafka"),
        (("java", "franz-go"), "its members have several client libraries: franz-go, java. The"),
        ((None,), "its client library is not known. The results of range in this output are"),
        (("java", None), f"its client library is not known. {JAVA_RESULTS}; another library can"),
    ],
)
def test_the_library_is_named_and_results_of_java_are_not_those_of_others(libraries, sentence):
    own = identify_assignor(group(*libraries))
    assert sentence in str(own)
    assert own.is_ported is (libraries == ("java", "java"))


def test_an_assignor_without_a_port_is_named():
    own = identify_assignor(group("kafkajs", assignor="RoundRobinAssigner"))
    assert str(own) == (
        "The group runs RoundRobinAssigner of kafkajs. kassay has no port of this assignor."
    )
    assert own.port is None


def actions(planned: Group) -> list[str]:
    return [one["action"] for one in plan_document(plan(planned))["actions"]]


def test_a_plan_recommends_only_assignors_of_the_library():
    java = actions(group("java", "java", assignor="sticky"))
    assert any(text.startswith("trigger a rebalance ") and ": sticky then" in text for text in java)
    librdkafka = actions(group("librdkafka", "librdkafka", assignor="range"))
    assert any("switch the assignor to roundrobin (computed with" in x for x in librdkafka)
    # Members of librdkafka end if they list an eager and a cooperative assignor.
    assert not any("cooperative-sticky" in text for text in librdkafka)
    assert any("with the assignor uniform (6 moves" in text for text in librdkafka)
    assert not any("to sticky" in text for text in librdkafka)
    assert actions(group("kafkajs", "kafkajs", assignor="RoundRobinAssigner")) == []


def test_a_plan_with_the_client_shows_the_results_of_its_own_assignors(monkeypatch):
    lists = {"m0": [("t", 0), ("t", 1), ("t", 2)], "m1": [("t", 3), ("t", 4), ("t", 5)]}
    answer = AssignorResult(assignment=Assignment(lists))
    monkeypatch.setattr(run_assignor, "run", lambda _group, _assignor: answer)
    monkeypatch.setattr(identify_assignor_module, "driver_command", lambda _: ("driver",))
    result = plan(group("sarama", "sarama", assignor="sticky"), client="sarama@1.43.3")
    names = [outcome.assignor for outcome in result.assignor_outcomes]
    assert names[:3] == [f"sarama@1.43.3:{name}" for name in ("range", "roundrobin", "sticky")]
    texts = [one.text for one in result.actions]
    assert any(": sticky of sarama@1.43.3 then" in text for text in texts)
    assert not any("of Java" in text for text in texts)
    summary = render_plan(result, TEXT, directory="out")
    assert "those of sarama@1.43.3; all other results are those of the Java client" in summary
