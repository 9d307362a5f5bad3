"""The assignor of a group is stated with the client library or broker that implements it."""

import pytest

from kassay.experiments.planning.own_assignor import own_assignor
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_files import plan_document
from kassay.experiments.planning.render_plan import render_html, render_summary, render_ticket
from kassay.reference.model.client import Client
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.group_status import GroupStatus

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
    own = own_assignor(group(*libraries))
    assert sentence in str(own)
    assert own.is_ported is (libraries == ("java", "java"))


def test_an_assignor_without_a_port_is_named():
    own = own_assignor(group("kafkajs", assignor="RoundRobinAssigner"))
    assert str(own) == (
        "The group runs RoundRobinAssigner of kafkajs. kassay has no port of this assignor."
    )
    assert own.port is None


def test_a_source_without_assignor_is_stated():
    text = "The source does not show the assignor that the group runs."
    assert str(own_assignor(group(None, assignor=None))) == text
    named = str(own_assignor(group("sarama", assignor=None)))
    assert named.startswith(f"{text} The results of each assignor in this output are")


def actions(planned: Group) -> list[str]:
    return [one["action"] for one in plan_document(plan(planned))["actions"]]


def test_a_plan_recommends_only_assignors_of_the_library():
    java = actions(group("java", "java", assignor="sticky"))
    assert any(text.startswith("trigger a rebalance: sticky then balances") for text in java)
    librdkafka = actions(group("librdkafka", "librdkafka", assignor="range"))
    assert any("switch the assignor to cooperative-sticky (computed with" in x for x in librdkafka)
    assert any("switch the assignor to uniform (3 moves" in text for text in librdkafka)
    assert not any("to sticky" in text or "trigger" in text for text in librdkafka)
    assert actions(group("kafkajs", "kafkajs", assignor="RoundRobinAssigner")) == []


@pytest.mark.parametrize("render", [render_html, render_ticket])
def test_pages_of_a_plan_name_the_library(render):
    assert "The group runs range of sarama." in render(plan(group("sarama", "sarama")))


def test_the_first_screen_names_the_library():
    text = render_summary(plan(group("sarama", "sarama")), directory="out")
    assert "Assignor: The group runs range of sarama. The results of range" in text
