"""Checks of the values of topics and members."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import index as as_integer
from typing import SupportsIndex

from kassay.reference.model.errors import InputError

MAX_PARTITIONS = 2**31 - 1
MAX_WEIGHT = 2**63 - 1
MAX_SPEED = 10_000


def check_partition_count(where: str, partitions: object) -> None:
    """Raise InputError unless a number of partitions is an integer from 0 to the maximum."""
    if not isinstance(partitions, SupportsIndex):
        raise InputError(f"{where}: partitions must be an integer, got {partitions!r}")
    if not 0 <= as_integer(partitions) <= MAX_PARTITIONS:
        raise InputError(
            f"{where}: partitions must be from 0 to {MAX_PARTITIONS}, got {partitions!r}"
        )


def checked_weights(where: str, weights: Iterable[int], partitions: int) -> tuple[int, ...]:
    """Convert weights to a tuple of integers, one per partition. Raise InputError if invalid."""
    integers = _integers(where, weights)
    check_length(where, "weights", integers, partitions)
    bad = next((weight for weight in integers if not 0 <= weight <= MAX_WEIGHT), None)
    if bad is not None:
        raise InputError(f"{where}: weights must be from 0 to {MAX_WEIGHT}, got {bad!r}")
    return integers


def check_length(where: str, name: str, values: tuple[object, ...], partitions: int) -> None:
    """Raise InputError unless a tuple has one value per partition."""
    if len(values) != partitions:
        raise InputError(
            f"{where}: {name} must have one entry per partition ({partitions}), got {len(values)}"
        )


def check_unique(kind: str, names: Sequence[str]) -> None:
    """Raise InputError if a name is listed twice."""
    if len(set(names)) != len(names):
        raise InputError(f"{kind} {first_repeated(names)!r} is listed twice")


def first_repeated(names: Iterable[str]) -> str:
    """Return the first name that occurs more than once."""
    return next(name for name, count in Counter(names).items() if count > 1)


def _integers(where: str, weights: Iterable[int]) -> tuple[int, ...]:
    """Convert weights to integers. Raise InputError for floats, which would lose precision."""
    numbers = tuple(weights)
    try:
        return tuple(map(as_integer, numbers))
    except TypeError:
        bad = next(number for number in numbers if not isinstance(number, SupportsIndex))
        raise InputError(
            f"{where}: weights must be integers, got {bad!r}; multiply them by a common factor and "
            "round, for example [round(1000 * weight) for weight in weights]"
        ) from None
