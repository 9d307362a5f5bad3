"""Hypothesis strategies for groups and assignments."""

from hypothesis import strategies as st

from kassay import Assignment, Group, Member, Topic

RACKS = ("r0", "r1", "r2")


@st.composite
def groups(
    draw: st.DrawFn,
    *,
    max_members: int = 4,
    max_topics: int = 4,
    max_partitions: int = 4,
    max_total: int = 8,
    weighted: bool = False,
    messy: bool = False,
) -> Group:
    """Small groups with owned partitions.

    ``messy`` adds topics without partitions or metadata, conflicting generations and claims
    to partitions that do not exist.
    """
    topics: list[Topic] = []
    for index in range(draw(st.integers(0 if messy else 1, max_topics))):
        room = max_total - sum(topic.partitions for topic in topics)
        if room <= 0:
            break
        count = draw(st.integers(0 if messy else 1, min(max_partitions, room)))
        weights = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
        topics.append(
            Topic(name=f"t{index}", partitions=count, weights=tuple(weights) if weighted else None)
        )
    names = [topic.name for topic in topics] + (["gone"] if messy else [])
    size = draw(st.integers(0 if messy else 1, max_members))
    all_pairs = [(t.name, p) for t in topics for p in range(t.partitions + (1 if messy else 0))]
    taken: set[tuple[str, int]] = set()
    members: list[Member] = []
    for index in range(size):
        chosen = draw(st.sets(st.sampled_from(names))) if names else set()
        subscription = tuple(name for name in names if name in chosen)
        claimable = [tp for tp in all_pairs if messy or (tp[0] in subscription and tp not in taken)]
        owned = draw(st.lists(st.sampled_from(claimable), unique=True)) if claimable else []
        taken.update(owned)
        generation = draw(st.sampled_from([-1, 3, 4])) if messy else 5
        members.append(
            Member(id=f"c{index}", subscription=subscription, owned=owned, generation=generation)
        )
    return Group(topics=tuple(topics), members=tuple(members))


@st.composite
def valid_assignments(draw: st.DrawFn, group: Group) -> Assignment:
    """Valid assignments of a group."""
    lists: dict[str, list[tuple[str, int]]] = {member.id: [] for member in group.members}
    for topic, subscribers in group.subscribers().items():
        if not subscribers:
            continue
        for number in range(group.topic_table()[topic].partitions):
            index = draw(st.sampled_from(subscribers))
            lists[group.members[index].id].append((topic, number))
    return Assignment(lists)
