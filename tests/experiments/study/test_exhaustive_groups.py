from itertools import permutations

from kassay.experiments.study.families.exhaustive_groups import exhaustive_groups
from kassay.reference import Group


def kinds(group: Group) -> frozenset:
    """All descriptions of a group under renaming of its members."""
    descriptions = set()
    for order in permutations(group.members):
        topics = sorted(
            (
                topic.partitions,
                tuple(
                    sum(tp.topic == topic.name for tp in member.owned)
                    if topic.name in member.subscription
                    else -1
                    for member in order
                ),
            )
            for topic in group.topics
        )
        descriptions.add(tuple(topics))
    return frozenset(descriptions)


def test_no_two_worlds_are_the_same_up_to_names():
    worlds = [kinds(group) for group in exhaustive_groups(members=3, partitions=3)]
    assert len(set(worlds)) == len(worlds) == 319


def test_every_world_of_two_partitions_and_two_members_is_there():
    # One topic of 2: 4 kinds of ownership. Two topics of 1: 22 pairs of kinds in which both
    # members consume something, 4 of them their own mirror image: (22 + 4) / 2 = 13.
    assert sum(1 for _ in exhaustive_groups(members=2, partitions=2)) == 4 + 13


def test_everybody_consumes_and_owns_only_what_it_consumes():
    for group in exhaustive_groups(members=2, partitions=4):
        assert sum(topic.partitions for topic in group.topics) == 4
        assert all(member.subscription for member in group.members)
        assert all(tp.topic in m.subscription for m in group.members for tp in m.owned)
