"""Cases of a study, and the split of the cases into batches and tasks."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kassay.experiments.study.families.registry import FAMILIES
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group

IMPORTED = "imported"
BATCH_CASES = 2_000
_TASK_CASES = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One group of a study, with the data that a worker needs to build the group.

    Examples
    --------
    >>> case = Case(family="mixed-churn", seed=7, assignors=("uniform",), start="uniform")
    >>> case.name
    'mixed-churn/7@uniform'
    """

    family: str  # a name in `FAMILIES`, or `IMPORTED`
    seed: int  # for an imported group its position in the file
    assignors: tuple[str, ...]
    start: str | None = None  # assignor whose results the members own
    document: str | None = None  # JSON of an imported group

    @property
    def name(self) -> str:
        """Return the key of the case in all tables, unique in a study."""
        return f"{self.family}/{self.seed}" + (f"@{self.start}" if self.start else "")

    def build(self) -> Group:
        """Build the group of the case. Raise `InputError` if the group cannot be built."""
        if self.document is not None:
            try:
                document = json.loads(self.document)
            except ValueError as error:
                raise InputError(f"{self.name}: {error}") from None
            return parse_group(document, where=self.name)
        if self.family not in FAMILIES:
            known = ", ".join(FAMILIES)
            raise InputError(f"unknown family {self.family!r}, expected one of {known}")
        return FAMILIES[self.family].build(self.seed, start=self.start)


def cases_of(
    families: Sequence[str], *, seeds: int, assignors: Sequence[str], first_seed: int = 0
) -> Iterator[Case]:
    """Yield the cases of a study, with ``seeds`` split evenly over the families.

    A family of fixed size gives all of its groups in addition. A family with its own history
    gives one case per seed and assignor.

    Examples
    --------
    >>> [case.name for case in cases_of(["mixed-join"], seeds=2, assignors=["range"])]
    ['mixed-join/0', 'mixed-join/1']
    """
    unlimited = [name for name in families if FAMILIES[name].size is None]
    for name in families:
        share = None
        if name in unlimited:
            extra = unlimited.index(name) < seeds % len(unlimited)
            share = seeds // len(unlimited) + extra
        yield from family_cases(name, seeds=share, assignors=assignors, first_seed=first_seed)


def family_cases(
    name: str, *, seeds: int | None, assignors: Sequence[str], first_seed: int = 0
) -> Iterator[Case]:
    """Yield the cases of one family.

    ``seeds`` None means all groups of a family of fixed size. ``first_seed`` applies to the
    other families.
    """
    family = FAMILIES[name]
    if family.size is not None:
        numbers = range(family.size if seeds is None else min(seeds, family.size))
    elif seeds is not None:
        numbers = range(first_seed, first_seed + seeds)
    else:
        raise UsageError(f"family {name!r} has no fixed number of groups, so seeds must be given")
    for seed in numbers:
        if family.own_history:
            for assignor in assignors:
                yield Case(family=name, seed=seed, assignors=(assignor,), start=assignor)
        else:
            yield Case(family=name, seed=seed, assignors=tuple(assignors))


def imported_cases(documents: Iterable[str], *, assignors: Sequence[str]) -> Iterator[Case]:
    """Yield one case per imported group document."""
    for position, document in enumerate(documents):
        yield Case(family=IMPORTED, seed=position, assignors=tuple(assignors), document=document)


@dataclass(frozen=True, slots=True)
class BatchedCase:
    """A case and the position of the case in its batch."""

    place: int
    case: Case


def batches_of(cases: Sequence[Case], *, wave: int = BATCH_CASES) -> list[Sequence[Case]]:
    """Split cases into batches of up to ``wave`` cases. Each batch mixes the whole study.

    Examples
    --------
    >>> cases = list(cases_of(["mixed-join"], seeds=5, assignors=["range"]))
    >>> [[case.seed for case in batch] for batch in batches_of(cases, wave=2)]
    [[0, 3], [1, 4], [2]]
    """
    count = -(-len(cases) // wave)
    return [cases[first::count] for first in range(count)]


def tasks_of(cases: Sequence[Case], *, tasks: int | None = None) -> list[tuple[BatchedCase, ...]]:
    """Split a batch into tasks with nearly equal numbers of cases of all families."""
    placed = [BatchedCase(place, case) for place, case in enumerate(cases)]
    count = min(tasks or -(-len(placed) // _TASK_CASES), len(placed))
    return [tuple(placed[first::count]) for first in range(count)]
