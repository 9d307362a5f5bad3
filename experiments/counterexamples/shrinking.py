"""Shrink a group or a document while a condition holds."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from kassay.reference.documents.json_codec import group_document, parse_group
from kassay.reference.model.assignment import ownership
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

_Item = TypeVar("_Item")

_MAX_COUNT = 1000
"""Maximum number that shrinking lowers. Larger numbers are times and offsets."""
_REFERENCES = (
    *("topics", "owned", "target"),
    *("active", "standby", "warmup", "lags", "offsets", "end_offsets"),
)
"""Keys of members and processes that refer to topics, tasks or partitions."""
_PER_PARTITION = ("racks", "weights", "changelog_racks", "end_offsets")


class GroupSize(NamedTuple):
    """Size of a group, as a sort key for smaller groups first."""

    members: int
    partitions: int
    topics: int
    owned: int
    subscriptions: int


def size_of(group: Group) -> GroupSize:
    """Count the members, partitions, topics, owned partitions and subscriptions of a group."""
    return GroupSize(
        members=len(group.members),
        partitions=group.partition_count,
        topics=len(group.topics),
        owned=ownership(group).owned_count,
        subscriptions=sum(len(member.subscription) for member in group.members),
    )


def shrink(
    found: _Item,
    fails: Callable[[_Item], bool],
    smaller: Callable[[_Item], Iterator[_Item]],
    *,
    attempts: int,
) -> _Item:
    """Shrink a group or document as long as ``fails`` returns True for a smaller copy.

    ``fails`` returns True for ``found``. ``smaller`` yields copies of a group or document
    without one part.
    """
    while True:
        for candidate in smaller(found):
            attempts -= 1
            if attempts < 0:
                return found
            if fails(candidate):
                found = candidate
                break
        else:
            return found


def smaller_groups(group: Group) -> Iterator[Group]:
    """Yield smaller copies of a group, those with fewer members first."""
    document = group_document(replace(group, id=None))
    for content in smaller_contents(document, Keys("members", "topics")):
        with suppress(InputError):
            yield replace(parse_group(content), id=group.id)


Content = Mapping[str, Any]
"""Document as a JSON object."""
_Number = Callable[[str, int], int | None]
"""Function that returns a partition's new number, or None for a removed partition."""


class Keys(NamedTuple):
    """Names of the keys for members and for topics in a JSON document."""

    places: str
    topics: str


def smaller_contents(content: Content, keys: Keys) -> Iterator[Content]:
    """Yield smaller copies of a JSON document, of which some are invalid.

    References to removed topics and partitions are removed as well.
    """
    places, topics = content[keys.places], content[keys.topics]
    before = partition_counts(topics)

    def changed(key: str, part: Any) -> Content:
        return _without_lost_references({**content, key: part}, keys, before)

    for rest in _shorter(places):
        yield {**content, keys.places: rest}
    yield from _without_place_and_owned(content, keys, before)
    for rest in chain(_shorter(topics), _with_a_smaller_part(topics)):
        yield changed(keys.topics, rest)
    for name, count in before.items():
        for number in range(count):
            yield _without_partition(content, keys, name, number)
    for at, place in enumerate(places):
        # Fewer subscriptions are tried before the removal of keys, such as all claims.
        for one in chain(_with_a_smaller_part(place), _shorter(place)):
            yield changed(keys.places, [*places[:at], one, *places[at + 1 :]])
    for rest in without_a_part({key: part for key, part in content.items() if key not in keys}):
        yield {**rest, keys.places: places, keys.topics: topics}


def _without_place_and_owned(
    content: Content, keys: Keys, before: Mapping[str, int]
) -> Iterator[Content]:
    places = content[keys.places]
    for at, place in enumerate(places):
        if owned := [tp for tp in place.get("owned", ()) if tp[1] < before.get(tp[0], 0)]:
            smaller: Content = {**content, keys.places: [*places[:at], *places[at + 1 :]]}
            for name, number in sorted(owned, reverse=True):
                smaller = _without_partition(smaller, keys, name, number)
            yield smaller


def partition_counts(topics: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of partitions or tasks per topic, subtopology or connector."""
    return {
        name: one if isinstance(one, int) else one.get("partitions", 0)
        for name, one in topics.items()
    }


def _shorter(items: Any) -> Iterator[Any]:
    """Yield shorter copies of a list: without all items, without each half, each quarter, ..."""
    is_table = isinstance(items, Mapping)
    parts = list(items.items() if is_table else items)
    size = len(parts)
    while size >= 1:
        for start in range(0, len(parts), size):
            rest = [*parts[:start], *parts[start + size :]]
            yield dict(rest) if is_table else rest
        size //= 2


def without_a_part(value: Any) -> Iterator[Any]:
    """Yield copies of a JSON value with fewer elements or with lower numbers."""
    if isinstance(value, Mapping | list | tuple):
        yield from _shorter(value)
        yield from _with_a_smaller_part(value)


def _with_a_smaller_part(value: Any) -> Iterator[Any]:
    is_table = isinstance(value, Mapping)
    for key, part in value.items() if is_table else enumerate(value):
        # A pair without a part is no reference.
        has_pairs = key in _REFERENCES and not isinstance(part, Mapping)
        smaller = _shorter(part) if has_pairs else without_a_part(part)
        if is_table and isinstance(part, int) and not isinstance(part, bool):
            smaller = iter(sorted({0, part // 2, part - 1}) if 0 < part <= _MAX_COUNT else ())
        for one in smaller:
            yield {**value, key: one} if is_table else [*value[:key], one, *value[key + 1 :]]


def _without_partition(content: Content, keys: Keys, topic: str, removed: int) -> Content:

    def number(name: str, old: int) -> int | None:
        if name != topic or old < removed:
            return old
        return None if old == removed else old - 1

    return _renumbered(content, keys, partition_counts(content[keys.topics]), number)


def _without_lost_references(content: Content, keys: Keys, before: Mapping[str, int]) -> Content:
    counts = partition_counts(content[keys.topics])

    def number(name: str, old: int) -> int | None:
        return None if counts.get(name, 0) <= old < before.get(name, 0) else old

    return _renumbered(content, keys, before, number)


def _renumbered(
    content: Content, keys: Keys, before: Mapping[str, int], number: _Number
) -> Content:
    """Renumber or remove the partitions of a document, as the function ``number`` returns."""
    topics = {
        name: _renumbered_topic(one, before[name], partial(number, name))
        for name, one in content[keys.topics].items()
    }
    lost = before.keys() - topics.keys()

    def renumber(reference: Any) -> Any:
        if not isinstance(reference, str):
            if len(reference) != 2:  # a part of the pair is removed; such a document is not valid
                return reference
            new = number(*reference)
            return None if new is None else [reference[0], new]
        name, _, text = reference.rpartition("_")
        if reference in before or name not in before:
            return None if reference in lost else reference
        new = number(name, int(text))
        return None if new is None else f"{name}_{new}"

    def changed(key: str, part: Any) -> Any:
        if not isinstance(part, Mapping) or key == "lags":
            return _changed(part, renumber)
        numbers = {name: one for name, one in part.items() if name not in lost}
        return {name: _changed(one, partial(number, name)) for name, one in numbers.items()}

    places = [
        {key: changed(key, part) if key in _REFERENCES else part for key, part in place.items()}
        for place in content[keys.places]
    ]
    return {**content, keys.topics: topics, keys.places: places}


def _renumbered_topic(one: Any, before: int, number: Callable[[int], int | None]) -> Any:
    kept = [old for old in range(before) if number(old) is not None]
    if not isinstance(one, Mapping):
        return len(kept)
    topic: dict[str, Any] = {**one}
    for key in _PER_PARTITION:
        if len(one.get(key) or ()) == before:
            topic[key] = [one[key][old] for old in kept]
    if "assignable" in one:
        topic["assignable"] = _changed(one["assignable"], number)
    return {**topic, "partitions": len(kept)} if "partitions" in one else topic


def _changed(part: Any, change: Callable[[Any], Any]) -> Any:
    """Change the elements of a list or the keys of a mapping, and remove those that become None."""
    if isinstance(part, Mapping):  # the keys are texts, also those that are numbers
        keys = {key: change(int(key) if key.isdecimal() else key) for key in part}
        return {str(new): part[key] for key, new in keys.items() if new is not None}
    return [new for one in part if (new := change(one)) is not None]
