from itertools import permutations

from kassay import Group
from kassay.experiments.study.families.all_families import FAMILIES
from kassay.experiments.study.families.finite_families import exhaustive_groups


def all_descriptions(group: Group) -> frozenset:
    """Return all descriptions of a group under permutations of its members."""
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


def test_no_two_groups_differ_only_in_names():
    descriptions = [all_descriptions(group) for group in exhaustive_groups(members=3, partitions=3)]
    assert len(set(descriptions)) == len(descriptions) == 319


def test_the_number_of_groups_with_two_partitions_and_two_members_is_complete():
    # One topic of 2: 4 kinds of ownership. Two topics of 1: 22 pairs of kinds in which both
    # members have a subscription, 4 of them symmetric: (22 + 4) / 2 = 13.
    assert sum(1 for _ in exhaustive_groups(members=2, partitions=2)) == 4 + 13


def test_exhaustive_families_contain_all_small_groups():
    family = FAMILIES["worlds-3x3"]
    every = [family.build(seed) for seed in range(family.size)]
    assert len(every) == 2 + 6 + 14 + 2 + 17 + 83 + 2 + 31 + 319
    assert max(len(group.members) for group in every) == 3
    assert max(group.partition_count for group in every) == 3
