"""Cases of a study, and their division into batches."""

import hashlib
import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate
from operator import xor
from typing import Any, Protocol

from kassay.experiments.implementations.assignor_names import kind_of_assignor, shown_name
from kassay.experiments.study.families.all_families import DOCUMENT_FAMILIES, FAMILIES, STUDIED
from kassay.reference.assignors import KIND_PORTS
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group

IMPORTED = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One group of a study, defined by its family and seed, with the assignors that run on it."""

    family: str  # a name in `STUDIED`, or `IMPORTED`
    seed: int  # random seed; for an imported group, the id of its document
    assignors: tuple[str, ...]
    start: str | None = None  # assignor whose results the members own
    document: str | None = None  # JSON of an imported group

    @property
    def name(self) -> str:
        """Return the unique name of the case, for example ``mixed-join/7``."""
        return f"{self.family}/{self.seed}" + (f"@{shown_name(self.start)}" if self.start else "")

    def with_document(self, document: str) -> "Case":
        """Return a copy of the case with an imported group document."""
        return replace(self, seed=document_id(document), document=document)

    def build(self) -> Group:
        """Build the group of the case, or raise InputError: unknown family or invalid JSON."""
        if self.document is not None:
            try:
                document = json.loads(self.document)
            except ValueError as error:
                raise InputError(f"{self.name}: the document is not valid JSON: {error}") from None
            return parse_group(document, where=self.name)
        if self.family not in FAMILIES:
            known = ", ".join(FAMILIES)
            raise InputError(f"unknown family {self.family!r}; choose from {known}")
        return FAMILIES[self.family].build(self.seed, start=self.start)


class Cases(Protocol):
    """Sequence of cases in a fixed order. Equal sequences have the same `repr`."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Case: ...

    def __iter__(self) -> Iterator[Case]:
        return (self[index] for index in range(len(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum(Cases):
    """Cases of one family with consecutive seeds."""

    family: str
    first_seed: int
    seeds: int
    assignors: tuple[str, ...]

    def __len__(self) -> int:
        return self.seeds * (len(self.assignors) if self._has_own_history else 1)

    def __getitem__(self, index: int) -> Case:
        if not self._has_own_history:
            return Case(family=self.family, seed=self.first_seed + index, assignors=self.assignors)
        seed, number = divmod(index, len(self.assignors))
        name = self.assignors[number]
        return Case(family=self.family, seed=self.first_seed + seed, assignors=(name,), start=name)

    @property
    def _has_own_history(self) -> bool:
        return self.family in FAMILIES and FAMILIES[self.family].own_history


@dataclass(frozen=True, slots=True)
class ImportedCases(Cases):
    """Cases of imported groups. The group documents are stored elsewhere.

    ``digest`` is computed from all documents, so that different documents have a different `repr`.
    """

    number: int = 0
    digest: int = 0  # bitwise XOR of the ids of all documents
    assignors: tuple[str, ...] = ()

    @classmethod
    def of(cls, documents: Iterable[str], *, assignors: Sequence[str]) -> "ImportedCases":
        """Create the cases of group documents. Equal documents become one case."""
        ids = {document_id(document) for document in documents}
        return cls(len(ids), reduce(xor, ids, 0), tuple(assignors))

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> Case:
        return Case(family=IMPORTED, seed=index, assignors=self.assignors)


@dataclass(frozen=True)
class JoinedCases(Cases):
    """Concatenation of several sequences of cases."""

    parts: tuple[Cases, ...]

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(accumulate(map(len, self.parts)))

    def __len__(self) -> int:
        return self._ends[-1] if self.parts else 0

    def __getitem__(self, index: int) -> Case:
        number = bisect_right(self._ends, index)
        return self.parts[number][index - (self._ends[number - 1] if number else 0)]


def cases_of(
    families: Sequence[str], *, seeds: int, assignors: Sequence[str], first_seed: int = 0
) -> Cases:
    """Return the cases of families, with the seeds divided evenly among the families."""
    divided = divided_seeds(families, seeds)
    return family_cases(divided, assignors=assignors, first_seed=first_seed)


def divided_seeds(families: Sequence[str], seeds: int) -> dict[str, int | None]:
    """Return the number of seeds per family, or None for a family of fixed size."""
    unlimited = [name for name in families if STUDIED[name].size is None]
    divided: dict[str, int | None] = dict.fromkeys(families)
    for number, name in enumerate(unlimited):
        divided[name] = seeds // len(unlimited) + (number < seeds % len(unlimited))
    return divided


def family_cases(
    families: Mapping[str, int | None], *, assignors: Sequence[str], first_seed: int = 0
) -> Cases:
    """Return the cases of families with a given number of seeds each.

    None means all groups of a family of fixed size. ``first_seed`` applies to the other families.
    """
    parts = []
    for name, seeds in families.items():
        size, first = STUDIED[name].size, first_seed
        number = size if seeds is None else seeds
        if number is None:
            raise UsageError(
                f"family {name!r} has no fixed number of groups; give its number of seeds"
            )
        if size is not None:
            first, number = 0, min(number, size)
        parts.append(
            Stratum(
                family=name,
                first_seed=first,
                seeds=number,
                assignors=_assignors_of(name, assignors),
            )
        )
    return JoinedCases(tuple(parts))


def _assignors_of(family: str, names: Sequence[str]) -> tuple[str, ...]:
    """Select the assignors in ``names`` that fit the kind of a family.

    If no name fits a family of documents, return all ports of their kind. If ``names`` is not empty
    and no name fits a family of consumer groups, raise UsageError.
    """
    documents = DOCUMENT_FAMILIES.get(family)
    kind = Kind.CONSUMER if documents is None else documents.kind
    found = tuple(name for name in names if kind_of_assignor(name) is kind)
    if documents is not None:
        return found or tuple(name for name, port in KIND_PORTS.items() if port.kind is kind)
    if names and not found:
        got = ", ".join(names)
        raise UsageError(f"family {family!r} requires an assignor of consumer groups, got {got}")
    return found


def imported_cases(documents: Iterable[str], *, assignors: Sequence[str]) -> tuple[Case, ...]:
    """Return one case per imported group document."""
    case = Case(family=IMPORTED, seed=0, assignors=tuple(assignors))
    return tuple(map(case.with_document, dict.fromkeys(documents)))


def document_id(document: str) -> int:
    """Return the id of a group document: the first 60 bits of its SHA-256."""
    return int(hashlib.sha256(document.encode()).hexdigest()[:15], 16)


BATCH_CASES = 100_000
"""Maximum number of cases per batch, about 32 MB of Parquet."""
_FIRST_BATCH = 1_000
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Batch:
    """Batch of consecutive cases, from position ``first`` to position ``end - 1``."""

    number: int
    first: int
    end: int

    @property
    def size(self) -> int:
        """Return the number of cases in the batch."""
        return self.end - self.first


def batches_of(total: int, *, largest: int = BATCH_CASES) -> Iterator[Batch]:
    """Divide all cases into batches, each of at most twice the size of the previous one.

    The first batch is small, so that its results are available early.
    """
    number = first = 0
    while first < total:
        end = min(total, first + min(largest, _FIRST_BATCH << min(number, 32)))
        yield Batch(number, first, end)
        number, first = number + 1, end


def case_index(position: Any, total: int) -> Any:
    """Convert a position in the shuffled order of cases to the index of a case.

    The function is a bijection of 0 to ``total - 1``. A position is an integer, or a column of
    64-bit integers. Adjacent positions have distant indices. Each range of positions therefore has
    cases of all families, and each task gets slow and fast cases.
    """
    factor = int(total * _GOLDEN_RATIO) or 1
    while math.gcd(factor, total) != 1:
        factor += 1  # only a factor that is coprime to the total gives a bijection
    return position * factor % total
