"""Iteration order of our hash maps compared with the JVM's."""

from __future__ import annotations

import random
from typing import Any

import jpype
import pytest

from kassay.reference.java_collections import HashMap, string_hash, utf16_key, uuid_map
from tests.conformance.generated_names import NAMINGS, new_name
from tests.conformance.jvm import driver

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module", autouse=True)
def _jvm() -> None:
    driver()


def _java_map(capacity: int | None) -> Any:
    java = jpype.JClass("java.util.HashMap")
    return java() if capacity is None else java(jpype.JInt(capacity))


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("seed", range(12))
def test_string_maps_iterate_like_javas(naming: str, seed: int) -> None:
    rng = random.Random(f"{naming}/{seed}")
    capacity = rng.choice((None, None, 0, 1, 5, 33, 100))
    ours: HashMap[str, int] = HashMap(string_hash, capacity=capacity)
    real = _java_map(capacity)
    names = _names(rng, naming)
    for _ in range(rng.randint(10, 300)):
        name = rng.choice(names)
        match rng.choice(("put", "put", "compute", "remove")):
            case "put":
                ours.put(name, 1)
                real.put(name, 1)
            case "compute":
                ours.compute_if_absent(name, lambda _: 1)
                real.computeIfAbsent(name, lambda _: 1)
            case "remove":
                ours.remove(name)
                real.remove(name)
        assert list(ours) == [str(key) for key in real.keySet()]


@pytest.mark.parametrize("seed", range(12))
def test_topic_id_maps_iterate_like_javas(seed: int) -> None:
    rng = random.Random(seed)
    ours = uuid_map()
    real = _java_map(None)
    kafka_id = jpype.JClass("org.apache.kafka.common.Uuid")
    for _ in range(rng.randint(5, 90)):
        # The halves have few values, so that ids collide, but at most five in one bin.
        high, low = (rng.choice((0, 1, 2**32)) for _ in range(2))
        bits = rng.getrandbits(128) if rng.random() < 0.5 else high << 64 | low
        ours.put(bits, None)
        real.put(kafka_id(*(jpype.JLong(_signed(half)) for half in divmod(bits, 2**64))), None)
        assert list(ours) == [_bits(key) for key in real.keySet()]


@pytest.mark.parametrize("naming", NAMINGS)
def test_strings_hash_and_sort_like_javas(naming: str) -> None:
    rng = random.Random(naming)
    names = _names(rng, naming)
    java = jpype.JClass("java.lang.String")
    assert [string_hash(name) for name in names] == [java(name).hashCode() for name in names]
    real = jpype.JClass("java.util.TreeSet")(names)
    assert sorted(names, key=utf16_key) == [str(name) for name in real]


def _names(rng: random.Random, naming: str) -> list[str]:
    names: list[str] = []
    for _ in range(60):
        names.append(new_name(rng, naming, names))
    return names


def _signed(half: int) -> int:
    return half - 2**64 if half >= 2**63 else half


def _bits(key: Any) -> int:
    high, low = key.getMostSignificantBits(), key.getLeastSignificantBits()
    return (int(high) % 2**64) << 64 | int(low) % 2**64
