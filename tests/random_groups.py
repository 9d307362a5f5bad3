"""Seeded small groups for brute force."""

import random
from dataclasses import replace

from kassay import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions


def random_group(seed: int) -> Group:
    """Return a group of up to 4 members, 4 topics and 8 partitions, a quarter without owner."""
    draw = random.Random(seed)
    topics = [draw.randint(1, 3) for _ in range(draw.randint(1, 4))]
    while sum(topics) > 8:
        topics.pop()
    names = [f"t{index}" for index in range(len(topics))]
    density = draw.random()
    subscriptions = [
        [n for n in names if draw.random() < density] for _ in range(draw.randint(1, 4))
    ]
    owned: list[list[tuple[str, int]]] = [[] for _ in subscriptions]
    for name, count in zip(names, topics, strict=True):
        subscribed = [
            index for index, subscription in enumerate(subscriptions) if name in subscription
        ]
        for number in range(count):
            if subscribed and draw.random() > 0.25:
                owned[draw.choice(subscribed)].append((name, number))
    return Group(
        topics=tuple(Topic(name=n, partitions=c) for n, c in zip(names, topics, strict=True)),
        members=tuple(
            Member(id=f"c{index}", subscription=tuple(subscriptions[index]), owned=owned[index])
            for index in range(len(subscriptions))
        ),
    )


def random_claims_group(seed: int) -> Group:
    """Return a small group with stale, contested and impossible claims of several generations."""
    draw = random.Random(f"claims/{seed}")
    group = random_group(seed)
    sizes = [(topic.name, topic.partitions) for topic in group.topics] + [("absent", 2)]
    members = []
    for member in group.members:
        claims = {(tp[0], tp[1]) for tp in member.owned}
        for name, partitions in sizes:
            claims |= {(name, n) for n in range(partitions + 1) if draw.random() < 0.15}
        generation = draw.choice((1, 1, 2, -1))
        owned = sorted(claims) if generation >= 0 else []
        members.append(replace(member, owned=Partitions.of(owned), generation=generation))
    return replace(group, members=tuple(members))
