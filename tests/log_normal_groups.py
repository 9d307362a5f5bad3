"""Seeded groups with log-normal weights."""

import random

from kassay import Group, Member, Topic


def log_normal_group(partitions: int = 300, members: int = 20, seed: int = 1) -> Group:
    """Return partitions with log-normal weights (sigma 1), which the members own in turn."""
    rng = random.Random(seed)
    weights = tuple(max(1, round(1000 * rng.lognormvariate(0, 1))) for _ in range(partitions))
    return Group(
        id=f"log-normal-{partitions}-{members}-{seed}",
        topics=(Topic(name="t", partitions=partitions, weights=weights),),
        members=tuple(
            Member(
                id=f"c{member:02}",
                subscription=("t",),
                owned=[("t", number) for number in range(member, partitions, members)],
                generation=1,
            )
            for member in range(members)
        ),
    )
