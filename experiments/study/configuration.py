"""A study as a file: what is to be studied, read with the place of every mistake."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from kassay.experiments.compare import CaseLimits
from kassay.experiments.study.batches import BATCH_CASES
from kassay.experiments.study.case import IMPORTED, Case, family_cases
from kassay.experiments.study.families.registry import FAMILIES
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.documents.config_nodes import ConfigNode, read_nodes

_ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyConfig:
    """A study, as its file describes it.

    Parameters
    ----------
    name
        Name of the file.
    digest
        SHA-256 of its text.
    families
        For each family how many seeds, or None for all of a family of a fixed size.
    assignors
        The assignors to judge.
    first_seed
        Where seeds begin.
    groups
        Files of group documents to study too.
    drawn
        Seeds of each family whose groups, where small, are kept whole with all their
        assignments; None for all.
    wave
        Cases that are kept together once they are done.
    limits
        What each search, and each group, may use up.
    """

    name: str
    digest: str
    families: Mapping[str, int | None]
    assignors: tuple[str, ...] = tuple(ASSIGNORS)
    first_seed: int = 0
    groups: tuple[Path, ...] = ()
    drawn: int | None = None
    wave: int = BATCH_CASES
    limits: CaseLimits = field(default_factory=CaseLimits)

    def cases(self) -> Iterator[Case]:
        """Yield the cases of all families; imported groups are not among them."""
        for name, seeds in self.families.items():
            yield from family_cases(
                name, seeds=seeds, assignors=self.assignors, first_seed=self.first_seed
            )

    def described(self) -> dict[str, object]:
        """Return what a manifest records of it."""
        return {
            "file": self.name,
            "sha256": self.digest,
            "families": {
                name: _ALL if seeds is None else seeds for name, seeds in self.families.items()
            },
            "drawn": self.drawn,
            "wave": self.wave,
        }


def read_config(text: str, name: str, *, directory: Path = Path()) -> StudyConfig:
    r"""Read a study configuration: YAML, of which JSON is a part.

    Parameters
    ----------
    text
        The file's content.
    name
        Its name, for errors.
    directory
        Where the files of groups that it names are relative to.

    Raises
    ------
    InvalidGroupError
        If it is not one: it says in which line, and at which field.

    Examples
    --------
    >>> config = read_config("families:\n  named: all\n  mixed-join: 3\n", "mine.yaml")
    >>> [case.name for case in config.cases()][-2:]
    ['mixed-join/1', 'mixed-join/2']
    >>> read_config("families:\n  mixed-jion: 3\n", "mine.yaml")
    Traceback (most recent call last):
        ...
    kassay...InputError: mine.yaml:2: families.mixed-jion: no such family, try ...
    """
    top = read_nodes(text, name)
    items = top.only(
        "families", "assignors", "first_seed", "groups", "drawn", "wave", "limits", "about"
    )
    if "families" not in items and "groups" not in items:
        top.fail("it needs families, or groups")
    found: dict[str, object] = {}
    if "assignors" in items:
        found["assignors"] = _assignors(items["assignors"])
    if "groups" in items:
        found["groups"] = tuple(directory / place.text() for place in items["groups"].elements())
    if "limits" in items:
        found["limits"] = _limits(items["limits"])
    for key, least in (("first_seed", 0), ("drawn", 0), ("wave", 1)):
        if key in items:
            found[key] = items[key].integer(least)
    if "about" in items:
        items["about"].text()
    return StudyConfig(
        name=name,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        families=_families(items["families"]) if "families" in items else {},
        **found,  # type: ignore[arg-type]
    )


def _families(places: ConfigNode) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name, place in places.items().items():
        if name == IMPORTED or name not in FAMILIES:
            place.fail(f"no such family, try {', '.join(FAMILIES)}")
        if place.value == _ALL:
            if FAMILIES[name].size is None:
                place.fail(f"the family has no end, so it takes a number, not {_ALL!r}")
            found[name] = None
        else:
            found[name] = place.integer(0)
    return found


def _assignors(places: ConfigNode) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for place in places.elements():
        name = place.text()
        if name not in ASSIGNORS:
            place.fail(f"no assignor {name!r}, try {', '.join(ASSIGNORS)}")
        if name in found:
            place.fail(f"{name!r} is repeated")
        found[name] = None
    return tuple(found)


def _limits(places: ConfigNode) -> CaseLimits:
    known = {item.name: item.type for item in fields(CaseLimits)}
    chosen: dict[str, float] = {}
    for name, place in places.only(*known).items():
        if known[name] is int:
            chosen[name] = place.integer(1)
        else:
            chosen[name] = _seconds(place)
    return CaseLimits(**chosen)  # type: ignore[arg-type]


def _seconds(place: ConfigNode) -> float:
    value = place.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        place.fail(f"expected a number, got {value!r}")
    if not 0 < value < float("inf"):
        place.fail(f"must be above 0, got {value!r}")
    return float(value)
