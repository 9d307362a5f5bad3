"""What-if wishes in words, as the command line and notebooks give them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from kassay.experiments.planning.group_changes import (
    Change,
    add_members,
    grow,
    limit_members,
    remove_members,
    repartition,
    reweigh,
    subscribe,
)
from kassay.experiments.sources.partition_weights import load_table
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

Alternatives = Sequence[tuple[str, Change]]

_RANGE = re.compile(r"(\+?)(\d+)\.\.(\+?)(\d+)(?::(\d+))?")
_NUMBER = re.compile(r"([+-]?)(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioSpec:
    """Changes to a group, in words.

    Parameters
    ----------
    partitions
        ``TOPIC=COUNT``, each a change.
    subscriptions
        ``MEMBER=TOPIC``, each a change.
    without
        Members to take away.
    members
        ``12`` for so many, ``+3`` or ``-1`` for more or fewer; ``5..50``, ``5..50:5`` or
        ``+0..+10`` for a sweep; several with commas.
    like
        The member that further ones are like.
    weights
        JSON file of topic to one integer a partition.
    growth
        Factors on all weights, several with commas for a sweep.
    capacity
        Most load of members that name none.
    """

    partitions: tuple[str, ...] = ()
    subscriptions: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    members: str | None = None
    like: str | None = None
    weights: Path | None = None
    growth: str | None = None
    capacity: int | None = None

    def alternatives(self) -> list[Alternatives]:
        """Read them, in the order in which they are applied.

        Raises
        ------
        InvalidGroupError
            If one of them cannot be read; the message names it.
        """
        found: list[Alternatives] = [_partitions(text) for text in self.partitions]
        found += [_subscription(text) for text in self.subscriptions]
        if self.without:
            removed = partial(_call, remove_members, members=self.without)
            found.append([(f"without {', '.join(self.without)}", removed)])
        if self.members is not None:
            found.append(list(_sizes(self.members, self.like)))
        if self.weights is not None:
            table = load_table(self.weights)
            found.append([(f"weights {self.weights.name}", partial(_call, reweigh, weights=table))])
        if self.growth is not None:
            found.append(list(_growth(self.growth)))
        if self.capacity is not None:
            limited = partial(_call, limit_members, capacity=self.capacity)
            found.append([(f"capacity {self.capacity}", limited)])
        return found


def _call(change: Any, group: Group, **arguments: Any) -> Group:
    changed: Group = change(group, **arguments)
    return changed


def _partitions(text: str) -> Alternatives:
    topic, separator, count = text.rpartition("=")
    if not separator or not topic or not count.isdecimal():
        raise InputError(f"--partitions wants TOPIC=COUNT, got {text!r}")
    return [(f"{topic} {count} partitions", partial(repartition, topic=topic, count=int(count)))]


def _subscription(text: str) -> Alternatives:
    member, separator, topic = text.rpartition("=")
    if not separator or not member or not topic:
        raise InputError(f"--subscribe wants MEMBER=TOPIC, got {text!r}")
    return [(f"{member} reads {topic}", partial(subscribe, member=member, topic=topic))]


def _sizes(text: str, like: str | None) -> Iterable[tuple[str, Change]]:
    for part in text.split(","):
        swept, single = _RANGE.fullmatch(part), _NUMBER.fullmatch(part)
        if swept and swept[1] == swept[3]:
            first, last, step = int(swept[2]), int(swept[4]), int(swept[5] or 1)
            if first > last or not step:
                raise InputError(f"--members: no number is in {part!r}")
            for number in range(first, last + 1, step):
                yield _size(swept[1], number, like)
        elif single:
            yield _size(single[1], int(single[2]), like)
        else:
            raise InputError(
                f"--members wants a number, +N, -N or FIRST..LAST[:STEP], got {part!r}"
            )


def _size(sign: str, number: int, like: str | None) -> tuple[str, Change]:
    if sign:
        count = -number if sign == "-" else number
        return f"members {sign}{number}", partial(add_members, count=count, like=like)
    return f"{number} members", partial(_resize, number=number, like=like)


def _resize(group: Group, number: int, like: str | None) -> Group:
    return add_members(group, number - len(group.members), like=like)


def _growth(text: str) -> Iterable[tuple[str, Change]]:
    for part in text.split(","):
        try:
            factor = Fraction(part)
        except (ValueError, ZeroDivisionError):
            raise InputError(f"--growth wants a factor like 1.5, got {part!r}") from None
        yield f"growth {part}", partial(grow, factor=factor)
