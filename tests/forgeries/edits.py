"""Edits of solution documents: random changes, and forgeries that keep all figures consistent."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kassay import Assignment, Group
from kassay.reference.documents.json_codec import assignment_document, group_fingerprint
from kassay.reference.model.load_metrics import loads
from kassay.solver.certificate.certificate import Origin, value_of
from kassay.solver.certificate.documents import constraint_document, level_document
from kassay.solver.solution import level_keys
from tests.forgeries.requests import Request, random_levels, random_rules

Document = dict[str, Any]
Edit = Callable[[random.Random, Request, Document], None]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values that are no objects or lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        leaf
        for key, each in items
        for leaf in (
            leaves(each, (*path, key)) if isinstance(each, dict | list) else [(*path, key)]
        )
    ]


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def change_number(rng: random.Random, request: Request, document: Document) -> None:
    paths = [path for path in leaves(document) if isinstance(at(document, path), int)]
    *parent, key = rng.choice(paths)
    holder = at(document, tuple(parent))
    value = holder[key]
    holder[key] = rng.choice((value + 1, value - 1, 0, -value - 1, value * 2, value + 1000))


def change_word(rng: random.Random, request: Request, document: Document) -> None:
    paths = [path for path in leaves(document) if isinstance(at(document, path), str)]
    words = [at(document, path) for path in paths]
    *parent, key = rng.choice(paths)
    at(document, tuple(parent))[key] = rng.choice(words)


def remove_part(rng: random.Random, request: Request, document: Document) -> None:
    path = rng.choice(leaves(document))
    path = path[: rng.randint(1, len(path))]
    del at(document, path[:-1])[path[-1]]


def claims_of(document: Document) -> list[Document]:
    return document.get("certificate", {}).get("claims", [])


def shuffle_claims(rng: random.Random, request: Request, document: Document) -> None:
    claims = claims_of(document)
    if claims:
        kind = rng.randrange(4)
        if kind == 0:
            claims.clear()
        elif kind == 1:
            claims.pop(rng.randrange(len(claims)))
        elif kind == 2:
            claims.append(dict(rng.choice(claims)))
        else:
            rng.shuffle(claims)


def change_origin(rng: random.Random, request: Request, document: Document) -> None:
    evidence = claims_of(document)
    if "conflict" in document.get("certificate", {}):
        evidence = [document["certificate"]["conflict"]]
    for claim in evidence:
        if rng.random() < 0.5:
            claim["origin"] = str(rng.choice(tuple(Origin)))


def change_tolerance(rng: random.Random, request: Request, document: Document) -> None:
    for claim in claims_of(document):
        if rng.random() < 0.5:
            claim["tolerance"] = rng.choice(([0, 1, 2], [0, 2, 1], [3, 0, 1], [0, 0, 1]))
            if rng.random() < 0.5:
                claim["bound"] = rng.choice((-1, 1)) * abs(claim["bound"])


def change_cost(rng: random.Random, request: Request, document: Document) -> None:
    for claim in claims_of(document):
        if claim["level"] == "movement":
            claim["cost"] = rng.choice(("count", "weight", []))
            claim["other"] = rng.choice((0, 1))
            claim["value"] = claim["bound"] = rng.choice((0, claim["value"]))


def change_objective(rng: random.Random, request: Request, document: Document) -> None:
    """Replace all levels, with consistent values where the assignment is valid."""
    forge(rng, request, document, levels=random_levels(rng, request.question.group))


def change_constraints(rng: random.Random, request: Request, document: Document) -> None:
    certificate = document.get("certificate")
    if certificate is not None:
        rules = random_rules(rng, request.question.group)
        certificate["constraints"] = [constraint_document(rule) for rule in rules]
        if rng.random() < 0.3:
            certificate["constraints"].append(
                {"constraint": "forbidden", "member": "unknown", "topic": "t9", "partition": None}
            )
        if "conflict" in certificate and rng.random() < 0.7:
            certificate["conflict"]["constraints"] = certificate["constraints"]


def change_group(rng: random.Random, request: Request, document: Document) -> None:
    """Ask about another group, and sometimes forge the id and the fingerprint."""
    group = request.question.group
    topics = tuple(
        replace(
            topic,
            weights=None
            if topic.weights is None
            else tuple(rng.choice((weight, weight + 1, 0)) for weight in topic.weights),
        )
        for topic in group.topics
    )
    members = [
        replace(member, owned=[tp for tp in member.owned if rng.random() < 0.7])
        for member in group.members
    ]
    changed = Group(topics=topics, members=tuple(members), id=rng.choice((group.id, None, "x")))
    request.question = replace(request.question, group=changed)
    if rng.random() < 0.7:
        document["fingerprint"] = group_fingerprint(changed)
    if rng.random() < 0.5:
        document["id"] = rng.choice((changed.id, None))


def move_partitions(rng: random.Random, request: Request, document: Document) -> None:
    """Give partitions to other members, with consistent values, bounds and loads."""
    forge(rng, request, document, moves=rng.choice((0, 1, 1, 2)))


def forge(
    rng: random.Random, request: Request, document: Document, *, moves: int = 0, levels: Any = None
) -> None:
    """Change the assignment or the levels, and make all figures of the document consistent."""
    certificate, group = document.get("certificate"), request.question.group
    if not isinstance(document.get("assignment"), dict) or certificate is None:
        return
    lists = document["assignment"]
    for _ in range(moves):
        owners = [member for member, partitions in lists.items() if partitions]
        partition = lists[giver := rng.choice(owners)].pop()
        takers = [m.id for m in group.members if partition[0] in m.subscription]
        lists.setdefault(rng.choice([*takers, giver]), []).append(partition)
    assignment = Assignment(lists)
    levels = request.question.levels if levels is None else levels
    origin = rng.choice(tuple(Origin))
    old = {claim["level"]: claim for claim in claims_of(document)}
    claims, slacks = [], rng.random() < 0.5
    for level in levels:
        value = value_of(group, assignment, level)
        bound = value
        while slacks and bound and value <= level.tolerance.limit(bound - 1):
            bound -= 1
        claim = level_document(level) | {"value": value, "bound": bound}
        claim["origin"] = str(rng.choice((origin, rng.choice(tuple(Origin)))))
        former = old.get(level.name, {})
        for key in ("best", "prices"):
            if key in former and rng.random() < 0.8:
                claim[key] = former[key]
        if rng.random() < 0.1:
            claim["best"] = assignment_document(assignment)
        claims.append(claim)
    certificate["claims"] = claims
    for key in [
        key for key in document if isinstance(document[key], dict) and "bound" in document[key]
    ]:
        del document[key]
    keys = level_keys(level.name for level in levels)
    for key, claim in zip(keys, claims, strict=True):
        document[key] = {"value": claim["value"], "bound": claim["bound"]}
    document["loads"] = loads(group, assignment)
    document["status"] = "optimal"
    document.pop("proof", None)


EDITS: tuple[Edit, ...] = (
    change_number,
    change_number,
    change_word,
    remove_part,
    shuffle_claims,
    change_origin,
    change_tolerance,
    change_cost,
    change_objective,
    change_constraints,
    change_group,
    move_partitions,
    move_partitions,
    move_partitions,
)
