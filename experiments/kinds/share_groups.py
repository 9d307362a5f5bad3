"""Compare assignments of share groups, in which members share partitions."""

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any

from kassay.experiments.kinds import group_kind
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions
from kassay.solver.limits import SearchLimits
from kassay.solver.solve import solve

SHARE_LEVELS = ("idle_members", "members_per_partition", "sum_of_squares", "movement", "slots")
_SLOT_LEVELS = ("idle_members", "slots")
_BALANCE_LEVELS = ("sum_of_squares", "movement")


def compare_share_group(
    document: KindDocument, answer: Mapping[str, Any], limits: SearchLimits
) -> list[group_kind.KindComparison]:
    """Compare the answer of an assignor for a share group with the optimum."""
    assigned = Assignment({m: [(t, n) for t, n in pairs] for m, pairs in answer["members"].items()})
    free = share_group(document, None)
    invalid = tuple(violations(free, assigned))
    uncovered = sum(text.endswith("is not assigned") for text in invalid)
    coverage = group_kind.KindMeasure("uncovered_partitions", uncovered, 0, 0, 0)
    if invalid:
        return [group_kind.KindComparison((coverage,), invalid=invalid)]
    pairs = chain.from_iterable(assigned.values())
    fixed = share_group(document, Counter((tp.topic, tp.partition) for tp in pairs))
    best = solve(free, levels=SHARE_LEVELS, limits=limits)
    fewest = solve(free, levels=_SLOT_LEVELS, limits=limits)
    balance = solve(fixed, levels=_BALANCE_LEVELS, limits=limits)
    chosen = {level.name: level.value for level in best.levels}
    measures = [
        group_kind.measure_level(free, assigned, solution, name, chosen)
        for solution, name in (
            (fewest, "idle_members"),
            (fewest, "slots"),
            (best, "members_per_partition"),
        )
    ]
    balanced, unnecessary = group_kind.compare_balance(fixed, assigned, balance, chosen)
    return [group_kind.KindComparison((coverage, *measures, *balanced), unnecessary)]


def share_group(document: KindDocument, copies: Mapping[tuple[str, int], int] | None) -> Group:
    """Convert a document of a share group to a group that the solver accepts.

    By default, each assignable partition has at least one member. Other partitions have no member.
    """
    topics, members = document.content["topics"], document.content["members"]
    subscribed = {name for member in members for name in member["topics"]}
    built, known = [], set()
    for name, fields in topics.items():
        count = fields if isinstance(fields, int) else fields["partitions"]
        assignable = range(count) if isinstance(fields, int) else fields.get("assignable")
        numbers = set(range(count) if assignable is None else assignable)
        known |= {(name, number) for number in range(count)}
        ranges = [(1, len(members)) if number in numbers else (0, 0) for number in range(count)]
        if copies is not None:
            given = [copies.get((name, number), 0) for number in range(count)]
            ranges = [(number, number) for number in given]
        built.append(Topic(name, count, copies=tuple(ranges) if name in subscribed else None))
    return Group(
        tuple(built),
        tuple(
            Member(
                one["id"],
                tuple(one["topics"]),
                holds=Partitions.of(tp for tp in map(tuple, one.get("owned", ())) if tp in known),
            )
            for one in members
        ),
        id=document.id,
    )


def _current_state(document: KindDocument) -> group_kind.CurrentState:
    owned = {one["id"]: one.get("owned", []) for one in document.content["members"]}
    return group_kind.CurrentState(document, {"members": owned})


SHARE = group_kind.GroupKind(
    kind=Kind.SHARE,
    title="Share group",
    places="members",
    topics="topics",
    no_action="the broker's assignor decides, and Kafka has no other one for share groups",
    compare=compare_share_group,
    current_state=_current_state,
    no_forecast="a rebalance moves no state and stops no partition, and no setting changes the "
    "answer of the broker's assignor",
)
