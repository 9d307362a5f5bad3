"""A way out of dead ends: wander among groups of one size until a smaller one turns up."""

from random import Random

from kassay.experiments.counterexamples.mutable_group import MutableGroup, change
from kassay.experiments.counterexamples.shrinking import Predicate
from kassay.reference.model.group import Group

_AT_ONCE = (1, 1, 1, 2, 2, 3, 4)


def random_walk(group: Group, fails: Predicate, *, steps: int, seed: str) -> Group:
    """Change a group at random, again and again, never making it larger.

    Taking one thing away after another ends where no single one can go. Here several go at
    once, owners, names and subscriptions change on the way, and a group as large as the one
    before is as good: that leads past most dead ends. Size is members, then partitions.

    Parameters
    ----------
    group
        A group on which ``fails`` holds. Only who consumes and owns what is looked at: where
        it hangs on anything else, the group is returned as it is.
    fails
        What must go on to hold.
    steps
        Groups to try.
    seed
        Seed of the walk: the same one takes the same way.

    Examples
    --------
    >>> from kassay.experiments.study.families.named_groups import NAMED_GROUPS
    >>> group = NAMED_GROUPS["D"].group
    >>> smaller = random_walk(group, lambda g: g.partition_count >= 4, steps=200, seed="demo")
    >>> smaller.partition_count
    4
    """
    rng = Random(seed)  # noqa: S311
    now = MutableGroup.of(group)
    now.tidy()
    if not now.owners or not fails(now.group()):
        return group
    for _ in range(steps):
        draft = now.copy()
        for _ in range(rng.choice(_AT_ONCE)):
            change(draft, rng)
            draft.tidy()
        if draft.owners and draft.size <= now.size and fails(draft.group()):
            now = draft
    return now.group()
