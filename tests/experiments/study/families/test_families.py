import hashlib
import json
from dataclasses import replace

import pytest

from kassay import InputError, violations
from kassay.experiments.implementations.run_assignor import Ending, StableResult
from kassay.experiments.study.cases import Case, cases_of
from kassay.experiments.study.families.all_families import FAMILIES, USUAL
from kassay.experiments.study.families.base_family import Range
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from kassay.experiments.study.families.random_groups import MembershipEvent, SeededFamily
from kassay.experiments.study.schemas import renaming_hash
from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import group_document, parse_group
from kassay.reference.model.assignment import ownership, rejoin
from kassay.reference.model.topic_partitions import Partitions
from tests import brute_force

SEEDED = [name for name in USUAL if FAMILIES[name].size is None]
OPTIONAL = [name for name in FAMILIES if name not in USUAL]
WITH_EVENT = [name for name in SEEDED if not name.endswith(("fresh", "churn"))]


def documents(name: str, seeds: range, start: str | None = None) -> str:
    groups = (FAMILIES[name].build(seed, start=start) for seed in seeds)
    return "\n".join(json.dumps(group_document(group), sort_keys=True) for group in groups)


def test_groups_of_seeds_are_the_same_in_every_release():
    everything = "\n".join(documents(name, range(5)) for name in SEEDED)
    digest = hashlib.sha256(everything.encode()).hexdigest()
    assert digest == "cfe19e841dca456102a2fc2539f55e97ed0f7149b5040cbeeefbc5b5f60348ac"


@pytest.mark.parametrize("name", WITH_EVENT)
def test_every_claim_is_unique_after_an_event(name):
    for seed in range(8):
        group = FAMILIES[name].build(seed)
        claims = [tp for member in group.members for tp in member.owned]
        assert len(set(claims)) == len(claims) > 0


def test_members_own_the_last_result_of_the_assignor_in_families_with_own_history():
    family = SeededFamily(
        name="test", mixed=True, event=MembershipEvent.GROW, own_history=True, topics=Range(2, 4)
    )
    for seed in range(5):
        group = family.build(seed, start="roundrobin")
        before = replace(
            group,
            topics=tuple(
                replace(
                    topic,
                    partitions=int((ownership(group).owners[topic.name] >= 0).sum())
                    or topic.partitions,
                )
                for topic in group.topics
            ),
        )
        assert rejoin(before, assign(before, "roundrobin")).members == tuple(
            replace(member, generation=member.generation + 1) for member in group.members
        )


def test_a_history_ends_if_its_assignor_fails(monkeypatch):
    group = FAMILIES["mixed-churn"].build(0, start="range")
    monkeypatch.setattr(
        "kassay.experiments.study.families.random_groups.run_until_stable",
        lambda *_: StableResult(ending=Ending.FAILED, assignment=None, rounds=1),
    )
    first = FAMILIES["mixed-churn"].build(0, start="range")
    assert ownership(first).owned_count == 0
    assert ownership(group).owned_count > 0


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_optima_of_named_groups_match_brute_force(name):
    named = NAMED_GROUPS[name]
    squares = sum(load * load for load in named.loads)
    assert brute_force.optimum(named.group) == (squares, named.moves)


def test_seeds_are_split_evenly_and_fixed_families_are_complete():
    cases = list(cases_of(USUAL, seeds=26, assignors=["range", "sticky"]))
    count = {name: sum(case.family == name for case in cases) for name in USUAL}
    assert count["named"] == len(NAMED_GROUPS)
    assert sorted({count[name] for name in SEEDED if not name.endswith("churn")}) == [2, 3]
    churn = [case for case in cases if case.family == "equal-churn"]
    assert {(case.start, case.assignors) for case in churn} == {
        ("range", ("range",)),
        ("sticky", ("sticky",)),
    }
    assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (Case(family="nope", seed=0, assignors=()), "unknown family 'nope'"),
        (Case(family="imported", seed=0, assignors=(), document="{"), "imported/0"),
        (Case(family="imported", seed=4, assignors=(), document="{}"), "imported/4: missing key"),
    ],
)
def test_a_case_that_cannot_be_built_reports_the_reason(case, message):
    with pytest.raises(InputError, match=message):
        case.build()


def optional_groups(name):
    return [FAMILIES[name].build(seed) for seed in range(6)]


@pytest.mark.parametrize("name", OPTIONAL)
def test_groups_of_optional_families_are_reproducible_documents_with_valid_assignments(name):
    for once, again in zip(optional_groups(name), optional_groups(name), strict=True):
        assert once == again
        assert parse_group(json.loads(json.dumps(group_document(once)))) == once
        assert list(violations(once, assign(once, "roundrobin"))) == []
        assert once.id.startswith(f"{name}/")


def test_groups_of_optional_families_are_the_same_in_every_release():
    names = [name for name in OPTIONAL if not name.startswith("kafka-grid")]
    documents = [group_document(group) for name in names for group in optional_groups(name)[:3]]
    digest = hashlib.sha256(json.dumps(documents, sort_keys=True).encode()).hexdigest()
    assert digest == "54b7bdb04ac7e83f03c5d277baaa38961db0260d781ff13ede3ea102577e8f4f"


def test_the_hash_of_a_group_ignores_names_and_order():
    for seed in range(20):
        group = FAMILIES["mixed-resubscribe"].build(seed)
        names = {topic.name: f"x{index}" for index, topic in enumerate(reversed(group.topics))}
        members = tuple(
            replace(
                member,
                id=f"m{index}",
                subscription=tuple(names[topic] for topic in member.subscription),
                owned=Partitions.of([(names[topic], number) for topic, number in member.owned]),
            )
            for index, member in enumerate(reversed(group.members))
        )
        topics = tuple(replace(t, name=names[t.name]) for t in reversed(group.topics))
        renamed = replace(group, topics=topics, members=members)
        assert renaming_hash(renamed) == renaming_hash(group)
        assert renaming_hash(replace(group, members=group.members[1:])) != renaming_hash(group)


def test_all_groups_of_an_exhaustive_family_have_different_hashes():
    family = FAMILIES["worlds-3x3"]
    hashes = {renaming_hash(family.build(seed)) for seed in range(family.size)}
    assert len(hashes) == family.size
