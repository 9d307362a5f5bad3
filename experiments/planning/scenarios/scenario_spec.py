"""Parse the scenarios of ``kassay what-if``, which are changes to a group as text."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kassay.experiments.planning.scenarios.group_changes import (
    Change,
    add_members,
    repartition,
    reweigh,
)
from kassay.reference.documents.json_codec import load_weights
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group

NamedChange = tuple[str, Change]

_RANGE = re.compile(r"(\+?)(\d+)\.\.(\+?)(\d+)(?::(\d+))?")
_NUMBER = re.compile(r"([+-]?)(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioSpec:
    """Changes to a group as text, in the option syntax of ``kassay what-if``."""

    partitions: tuple[str, ...] = ()
    members: str | None = None
    like: str | None = None
    weights: Path | None = None
    allow_lag: bool = False

    def alternatives(self) -> list[Sequence[NamedChange]]:
        """Parse the changes. Return a list of alternatives for each kind of change."""
        kinds: list[Sequence[NamedChange]] = [[_partitions(text)] for text in self.partitions]
        if self.members is not None:
            # The file of weights, which applies next, replaces lag.
            allow_lag = self.allow_lag or self.weights is not None
            add = partial(add_members, like=self.like, allow_lag=allow_lag)
            kinds.append(list(_members(self.members, add)))
        if self.weights is not None:
            table = load_weights(self.weights)
            kinds.append([(f"weights {self.weights.name}", partial(reweigh, weights=table))])
        return kinds


def _partitions(text: str) -> NamedChange:
    topic, separator, count = text.rpartition("=")
    if not separator or not topic or not count.isdecimal():
        raise UsageError(f"--partitions must be TOPIC=COUNT, got {text!r}")
    return f"{topic} {count} partitions", partial(repartition, topic=topic, count=int(count))


def _members(text: str, add: Callable[..., Group]) -> Iterable[NamedChange]:
    for part in text.split(","):
        interval, single = _RANGE.fullmatch(part), _NUMBER.fullmatch(part)
        if interval and interval[1] == interval[3]:
            first, last, step = int(interval[2]), int(interval[4]), int(interval[5] or 1)
            if first > last:
                raise UsageError(
                    "--members: the second number of a range must not be closer to 0 than the "
                    f"first, got {part!r}"
                )
            if not step:
                raise UsageError(f"--members: the step of a range must be above 0, got {part!r}")
            for number in range(first, last + 1, step):
                yield _resized(interval[1], number, add)
        elif single:
            yield _resized(single[1], int(single[2]), add)
        else:
            raise UsageError(
                f"--members must be a number, +N, -N or FIRST..LAST[:STEP], got {part!r}"
            )


def _resized(sign: str, number: int, add: Callable[..., Group]) -> NamedChange:
    if sign:
        count = -number if sign == "-" else number
        return f"members {sign}{number}", partial(add, count=count)
    return f"{number} members", lambda group: add(group, number - len(group.members))
