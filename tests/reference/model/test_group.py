import uuid

import pytest

from kassay import Group, InputError, Member, Topic
from tests.notation import group as small_group


def test_the_topic_id_is_given_or_derived_from_the_name_as_in_java():
    # Output of UUID.nameUUIDFromBytes for the UTF-8 bytes of the name.
    assert str(Topic(name="orders", partitions=1).uuid) == "12c500ed-0b78-3910-9fb4-6af0f246be87"
    topic_id = uuid.UUID(int=5)
    assert Topic(name="t", partitions=1, id=topic_id).uuid == topic_id


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Topic(name="t", partitions=-1), "topic 't': partitions must be from 0"),
        (
            lambda: Topic(name="t", partitions=2, weights=(1,)),
            r"one entry per partition \(2\), got 1",
        ),
        (lambda: Topic(name="t", partitions=1, weights=(-4,)), "weights must be from 0 .*, got -4"),
        (lambda: Topic(name="t", partitions=1, weights=(2**63,)), "got 9223372036854775808"),
        (lambda: Topic(name="t", partitions=1, racks=()), r"racks must have .*, got 0"),
        (lambda: Member(id="a", subscription=("t", "t")), "lists topic 't' twice"),
        (lambda: Member(id="a", subscription=(), generation=-2), "generation must be at least -1"),
        (
            lambda: Member(id="a", subscription=(), capacity=-1),
            "capacity must be at least 0, got -1",
        ),
        (lambda: Member(id="a", subscription=(), protocol_version=4), "protocol_version"),
        (lambda: Member(id="a", subscription=(), user_data="v1"), "user_data must be null or 'v0'"),
        (lambda: Member(id="a", subscription=(), streams=(("t", 0),)), "streams of topic 't'"),
        (lambda: Member(id="a", subscription=(), owned=[("t", -3)]), "got -3"),
    ],
)
def test_values_out_of_range_are_errors_that_name_the_field(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_the_first_of_several_repeated_names_is_reported():
    members = tuple(Member(id=id, subscription=()) for id in ("c", "b", "a", "a", "b"))
    topics = tuple(Topic(name=name, partitions=1) for name in ("z", "y", "y", "z"))
    with pytest.raises(InputError, match="member id 'b' is listed twice"):
        Group(topics=(), members=members)
    with pytest.raises(InputError, match="topic 'z' is listed twice"):
        Group(topics=topics, members=())
    with pytest.raises(InputError, match="lists topic 'z' twice"):
        Member(id="a", subscription=("z", "y", "x", "y", "z"))


def test_topics_without_partitions_have_no_subscribers():
    group = small_group("t:1 u:1 empty:0", a="t u gone empty", b="t", c="t u", d="u")
    assert group.subscribers() == {"t": (0, 1, 2), "u": (0, 2, 3), "empty": ()}


@pytest.mark.parametrize(
    ("weights", "weighted"),
    [(["2"], False), (["3,3"], False), (["1,2"], True), (["2,2", "2"], True)],
)
def test_a_group_is_weighted_if_two_partition_weights_differ(weights, weighted):
    topics = " ".join(f"t{at}:{sizes}" for at, sizes in enumerate(weights))
    assert small_group(topics, a="t0 t1").is_weighted is weighted


def test_weights_of_partitions_without_subscribers_do_not_count():
    group = small_group("t:3,3 idle:9,9", a="t")
    assert (group.common_weight, group.is_weighted) == (3, False)
    assert small_group("t:3,3 idle:9,9").common_weight == 1
