"""The port of the assignor of share groups equals Kafka's class on random groups."""

import os
from random import Random

import pytest

from kassay.experiments.implementations.client_libraries import install, parse_library_version
from kassay.experiments.implementations.run_assignor import run_on_document
from kassay.reference.documents.kind_documents import Kind, parse_kind_document

pytestmark = pytest.mark.kafka
SEEDS = int(os.environ.get("KASSAY_SHARE_SEEDS", "3400"))


def random_group(rng):
    topics = {f"t{rng.randint(0, 99)}": rng.randint(1, rng.choice([3, 12, 40])) for _ in range(4)}
    names = list(topics)
    is_equal = rng.random() < 0.5
    ids = {f"{rng.getrandbits(rng.choice([16, 88])):x}" for _ in range(rng.choice([2, 5, 12, 40]))}
    members = [
        {"id": id, "topics": names if is_equal else rng.sample(names, rng.randint(1, len(names)))}
        for id in sorted(ids)
    ]
    return {"kind": "share", "topics": topics, "members": members}


def changed(rng, group, answer):
    """Return the group after an event, with the partitions of the answer."""
    members = [{**one, "owned": answer["members"].get(one["id"], [])} for one in group["members"]]
    names = list(group["topics"])
    if rng.random() < 0.5 and len(members) > 1:
        members.pop(rng.randrange(len(members)))
    if rng.random() < 0.6:
        topics = rng.choice(members)["topics"] if rng.random() < 0.7 else names[:1]
        members.append({"id": f"{rng.getrandbits(88):x}", "topics": topics})
    if rng.random() < 0.2:
        rng.choice(members)["topics"] = rng.sample(names, rng.randint(0, len(names)))
    topics = dict(group["topics"])
    if rng.random() < 0.2:
        count = topics[names[0]] if isinstance(topics[names[0]], int) else 1
        numbers = sorted(rng.sample(range(count), rng.randint(0, count)))
        topics[names[0]] = {"partitions": count, "assignable": numbers}
    rng.shuffle(members)
    return {"kind": "share", "topics": topics, "members": members}


def test_the_port_equals_the_class_of_the_broker():
    install(*parse_library_version("kafka-broker@4.4.0"))
    compared = 0
    for seed in range(SEEDS):
        rng = Random(seed)
        group = random_group(rng)
        for _ in range(3):
            document = parse_kind_document(group, kind=Kind.SHARE)
            expected = run_on_document(document, "kafka-broker@4.4.0@300s:share")
            found = run_on_document(document, "share")
            assert found.failed == expected.failed, (seed, group)
            if expected.answer is None:
                break
            answer = {id: [list(one) for one in own] for id, own in found.answer["members"].items()}
            assert answer == expected.answer["members"], (seed, group)
            compared += 1
            group = changed(rng, group, expected.answer)
    assert compared > SEEDS
