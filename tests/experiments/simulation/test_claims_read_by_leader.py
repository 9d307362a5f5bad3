"""Claims that the leader of a group of several libraries reads."""

from pathlib import Path

import pytest

from kassay.experiments.simulation.assignor_policies import (
    java_assignor,
    library_assignor,
    member_as_leader_reads_it,
)
from kassay.reference.model.errors import UpstreamError
from kassay.reference.model.group import NO_GENERATION, Member

DOCS = Path(__file__).parents[3] / "docs" / "results" / "clients.md"
FRESH = Member(id="a", subscription=("t",))
OWNER = Member(id="a", subscription=("t",), owned=[("t", 0)], generation=4)


def documented_cells(assignor):
    """Yield leader, member and answer of the documented table of an assignor, without dashes."""
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    begin = next(n for n, line in enumerate(lines) if f"leader of `{assignor}`" in line)
    _, *names = (cell.strip() for cell in lines[begin].strip("| ").split("|"))
    for line in lines[begin + 2 : begin + 2 + len(names)]:
        leader, *answers = (cell.strip() for cell in line.strip("| ").split("|"))
        for name, answer in zip(names, answers, strict=True):
            if answer != "–":
                yield pytest.param(assignor, leader, name, answer, id=f"{leader} reads {name}")


def assignor_of(library, assignor):
    return library_assignor("kafka-clients" if library == "java" else library, assignor)


@pytest.mark.parametrize(
    ("assignor", "leader", "sender", "answer"),
    [*documented_cells("sticky"), *documented_cells("cooperative-sticky")],
)
def test_a_leader_reads_the_claims_of_the_documented_libraries(assignor, leader, sender, answer):
    leading, sending = assignor_of(leader, assignor), assignor_of(sender, assignor)
    if answer == "fails":
        with pytest.raises(UpstreamError, match="decode"):
            member_as_leader_reads_it(FRESH, sending, leading, None)
    else:
        read = member_as_leader_reads_it(OWNER, sending, leading, leading.library)
        assert (read.owned == OWNER.owned) == (answer == "yes")


def test_members_of_sarama_send_owned_partitions_only_after_a_leader_of_sarama():
    sarama, java = library_assignor("sarama", "sticky"), java_assignor("sticky")
    assert not len(member_as_leader_reads_it(OWNER, sarama, java, java.library).owned)
    assert member_as_leader_reads_it(OWNER, sarama, java, sarama.library) == OWNER


def test_members_of_aiokafka_send_no_generation():
    aiokafka, java = library_assignor("aiokafka", "sticky"), java_assignor("sticky")
    read = member_as_leader_reads_it(OWNER, aiokafka, java, java.library)
    assert (read.owned, read.generation) == (OWNER.owned, NO_GENERATION)


def test_older_releases_of_kafka_python_write_user_data_like_java():
    older, java = library_assignor("kafka-python@2.3.3", "sticky"), java_assignor("sticky")
    assert member_as_leader_reads_it(OWNER, older, java, java.library) == OWNER


def test_a_leader_of_the_java_client_fails_with_a_member_of_kafka_go():
    kafka_go = library_assignor("kafka-go", "range")
    with pytest.raises(UpstreamError, match="SchemaException"):
        member_as_leader_reads_it(FRESH, kafka_go, java_assignor("range"), None)
