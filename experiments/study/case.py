"""Cases: groups as they travel to the workers, small and rebuilt there."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kassay.experiments.study.families.registry import FAMILIES
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

IMPORTED = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One group of a study, by what it takes to build it again.

    Parameters
    ----------
    family
        Name of its family in `FAMILIES`, or `IMPORTED`.
    seed
        Its seed; for an imported group its position in the file.
    assignors
        The assignors that are to be judged on it.
    start
        Assignor whose results its members own, in a family with a history of its own.
    document
        Group document as JSON, for an imported group.

    Examples
    --------
    >>> case = Case(family="mixed-churn", seed=7, assignors=("uniform",), start="uniform")
    >>> case.name
    'mixed-churn/7@uniform'
    """

    family: str
    seed: int
    assignors: tuple[str, ...]
    start: str | None = None
    document: str | None = None

    @property
    def name(self) -> str:
        """Key of the case in every table, unique within a study."""
        return f"{self.family}/{self.seed}" + (f"@{self.start}" if self.start else "")

    def build(self) -> Group:
        """Build the group.

        Raises
        ------
        InvalidGroupError
            If the family is unknown or the document is bad.
        """
        if self.document is not None:
            try:
                document = json.loads(self.document)
            except ValueError as error:
                raise InputError(f"{self.name}: {error}") from None
            return parse_group(document, where=self.name)
        if self.family not in FAMILIES:
            raise InputError(f"no family {self.family!r}; there are {', '.join(FAMILIES)}")
        return FAMILIES[self.family].build(self.seed, start=self.start)


def cases_of(
    families: Sequence[str], *, seeds: int, assignors: Sequence[str], first_seed: int = 0
) -> Iterator[Case]:
    """Yield the cases of a study: ``seeds`` in all, dealt evenly to the families.

    A family of a fixed size gives all its groups, beyond that number. In a family with
    histories of their own, each seed gives one case an assignor.

    Examples
    --------
    >>> [case.name for case in cases_of(["mixed-join"], seeds=2, assignors=["range"])]
    ['mixed-join/0', 'mixed-join/1']
    """
    endless = [name for name in families if FAMILIES[name].size is None]
    shares = dict(zip(endless, _shares(seeds, len(endless)), strict=True))
    for name in families:
        yield from family_cases(
            name, seeds=shares.get(name), assignors=assignors, first_seed=first_seed
        )


def family_cases(
    name: str, *, seeds: int | None, assignors: Sequence[str], first_seed: int = 0
) -> Iterator[Case]:
    """Yield the cases of one family.

    Parameters
    ----------
    name
        The family.
    seeds
        How many seeds; None for all groups of a family of a fixed size, which never gives
        more than it has.
    assignors
        The assignors to judge.
    first_seed
        Where seeds begin, in a family without end.

    Examples
    --------
    >>> [case.name for case in family_cases("named", seeds=2, assignors=["range"])]
    ['named/0', 'named/1']
    """
    family = FAMILIES[name]
    size = family.size
    if size is None:
        if seeds is None:
            raise ValueError(f"family {name!r} has no end")
        numbers = range(first_seed, first_seed + seeds)
    else:
        numbers = range(size if seeds is None else min(seeds, size))
    everybody = tuple(assignors)
    for seed in numbers:
        if family.own_history:
            for assignor in everybody:
                yield Case(family=name, seed=seed, assignors=(assignor,), start=assignor)
        else:
            yield Case(family=name, seed=seed, assignors=everybody)


def imported_cases(documents: Iterable[str], *, assignors: Sequence[str]) -> Iterator[Case]:
    """Yield a case for each group document."""
    for position, document in enumerate(documents):
        yield Case(family=IMPORTED, seed=position, assignors=tuple(assignors), document=document)


def _shares(total: int, parts: int) -> list[int]:
    """Split a number into nearly equal parts, the larger first."""
    return [total // parts + (index < total % parts) for index in range(parts)] if parts else []
