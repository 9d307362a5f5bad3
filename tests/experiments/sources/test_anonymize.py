import json

from hypothesis import given
from hypothesis import strategies as st

from kassay.experiments.sources.anonymize import anonymize
from kassay.reference.assignors import ASSIGNORS, assign
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.group import Client, Group, GroupStatus, Member, Topic

SECRET = "Zürich-cards"


def secret_group(identifier: str = SECRET) -> Group:
    """Return a group in which each name contains `SECRET`."""
    topic, other = f"{SECRET}.payments", f"{SECRET}.orders"
    first = Member(
        id=f"{SECRET}-1",
        subscription=(topic, other, f"{SECRET}.unknown"),
        owned=[(topic, 1), (f"{SECRET}.deleted", 0)],
        target=[(other, 0)],
        generation=4,
        instance_id=f"{SECRET}-instance",
        rack=f"{SECRET}-rack",
        streams=((topic, 2),),
        client=Client(id=f"{SECRET}-client", host=f"{SECRET}.example", library=f"{SECRET}-fork"),
    )
    second = Member(id=f"{SECRET}-0", subscription=(topic,), capacity=900)
    topics = (
        Topic(name=topic, partitions=2, weights=(7, 8), racks=((f"{SECRET}-rack",), (None,))),
        Topic(name=other, partitions=1),
    )
    status = GroupStatus(state="Stable", assignor=f"com.{SECRET}.Assignor")
    return Group(
        id=identifier,
        topics=topics,
        members=(first, second),
        notes=(SECRET,),
        status=status,
        weight_unit=SECRET,
    )


def as_json(group: Group) -> str:
    return json.dumps(group_document(group), ensure_ascii=False)


def test_no_old_name_remains():
    [anonymous], names = anonymize([secret_group()])
    assert as_json(secret_group()).count(SECRET) >= 16
    assert SECRET not in as_json(anonymous)
    assert all(SECRET in old for table in names.values() for old in table)


def test_numbers_stay():
    [anonymous], names = anonymize([secret_group()])
    member = anonymous.member_table()[names["member"][f"{SECRET}-1"]]
    assert (member.generation, member.streams[0][1]) == (4, 2)
    assert [topic.weights for topic in anonymous.topics] == [(7, 8), None]
    assert anonymous.members[1].capacity == 900


def test_a_name_has_one_new_name_in_all_groups():
    anonymous, _ = anonymize([secret_group(), secret_group("another group")])
    assert anonymous[0].members == anonymous[1].members
    assert anonymous[0].id != anonymous[1].id


@given(st.sets(st.text(min_size=1), min_size=1, max_size=12), st.integers(1, 5))
def test_assignors_that_sort_names_assign_the_same(ids, partitions):
    topics = tuple(Topic(name=f"topic {name}", partitions=partitions) for name in "zay")
    names = tuple(topic.name for topic in topics)
    members = tuple(Member(id=name, subscription=names) for name in sorted(ids))
    group = Group(topics=topics, members=members)
    [anonymous], new = anonymize([group])
    for assignor in ("range", "roundrobin"):
        assert assignor in ASSIGNORS
        renamed = {
            new["member"][member]: {(new["topic"][topic], number) for topic, number in pairs}
            for member, pairs in assign(group, assignor).items()
        }
        assert {m: set(pairs) for m, pairs in assign(anonymous, assignor).items()} == renamed


def test_names_of_kafka_assignors_and_client_libraries_stay():
    member = Member(id="a", subscription=(), client=Client(library="librdkafka"))
    group = Group(topics=(), members=(member,), status=GroupStatus(assignor="cooperative-sticky"))
    [anonymous], _ = anonymize([group])
    assert anonymous.status.assignor == "cooperative-sticky"
    assert anonymous.members[0].client.library == "librdkafka"
