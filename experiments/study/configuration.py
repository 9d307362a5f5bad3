"""Read the configuration of a study, and describe it in the manifest of its output."""

import hashlib
import importlib.metadata
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from kassay.experiments.comparison.compare import LIMITS, CaseLimits
from kassay.experiments.implementations.assignor_names import check_shown_names, complete_name
from kassay.experiments.study.cases import BATCH_CASES, IMPORTED, Cases, ImportedCases, family_cases
from kassay.experiments.study.families.all_families import STUDIED
from kassay.reference.assignors import RELEASED_ASSIGNORS
from kassay.reference.documents.config_nodes import ConfigNode, read_nodes
from kassay.reference.model.errors import InputError

_ALL = "all"
_KEYS = ("families", "assignors", "first_seed", "groups", "drawn", "batch_cases", "limits", "about")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """Settings for the evaluation of a study's cases."""

    limits: CaseLimits = LIMITS
    drawn: int | None = None  # cases with smaller seeds keep documents and assignments; None: all
    batch_cases: int = BATCH_CASES  # maximum number of cases per batch
    compared: tuple[str, ...] = ()  # shown names of the assignors that are compared in pairs


DEFAULT_SETTINGS = StudySettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyConfig(StudySettings):
    """Configuration of a study: families, assignors, group documents and settings."""

    file: str | None = None  # name of the configuration file, if there is one
    digest: str | None = None  # its SHA-256
    families: Mapping[str, int | None]  # seeds per family; None for all groups of the family
    seeds: int | None = None  # number that was divided among the families, if there is one
    assignors: tuple[str, ...] = RELEASED_ASSIGNORS
    first_seed: int = 0
    groups: tuple[str | Path, ...] = ()  # files of group documents, and URIs

    def cases(self) -> Cases:
        """Return the cases of the study's families, without imported groups."""
        return family_cases(self.families, assignors=self.assignors, first_seed=self.first_seed)

    def described(self, imported: ImportedCases) -> dict[str, object]:
        """Return the configuration as JSON for the manifest of the output.

        For imported groups, it contains the bitwise XOR of the ids of their documents.
        """
        families: list[dict[str, object]] = [asdict(STUDIED[name]) for name in self.families]
        described: dict[str, object] = {
            "seeds": len(self.cases()) if self.seeds is None else self.seeds,
            "first_seed": self.first_seed,
            "imported_groups": len(imported),
            "assignors": list(self.assignors),
            "limits": {
                name: value for name, value in asdict(self.limits).items() if name != "stop"
            },
            "families": families,
        }
        if self.compared:
            described["compared"] = list(self.compared)
        if len(imported):
            families.append({"name": IMPORTED})
            described["imported_digest"] = f"{imported.digest:015x}"
        if self.file is not None:
            described["study"] = {
                "file": self.file,
                "sha256": self.digest,
                "families": {
                    name: _ALL if seeds is None else seeds for name, seeds in self.families.items()
                },
                "drawn": self.drawn,
                "batch_cases": self.batch_cases,
            }
        return described


def read_config(text: str, name: str, *, directory: Path = Path()) -> StudyConfig:
    r"""Parse the configuration of a study in YAML or JSON.

    ``groups`` in the configuration are files relative to ``directory``, or URIs.
    """
    top = read_nodes(text, name)
    items = top.only(*_KEYS)
    if "families" not in items and "groups" not in items:
        top.fail("the key 'families' or 'groups' is required")
    optional: dict[str, Any] = {}
    if "assignors" in items:
        optional["assignors"] = _assignors(items["assignors"])
    if "groups" in items:
        texts = (node.text() for node in items["groups"].elements())
        optional["groups"] = tuple(text if ":" in text else directory / text for text in texts)
    if "limits" in items:
        optional["limits"] = _limits(items["limits"])
    for key, least in (("first_seed", 0), ("drawn", 0), ("batch_cases", 1)):
        if key in items:
            optional[key] = items[key].integer(least)
    if optional.get("batch_cases", 1) > BATCH_CASES:
        items["batch_cases"].fail(f"must be at most {BATCH_CASES}, got {optional['batch_cases']}")
    if "about" in items:
        items["about"].text()
    return StudyConfig(
        file=name,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        families=_families(items["families"]) if "families" in items else {},
        **optional,
    )


def _families(nodes: ConfigNode) -> dict[str, int | None]:
    seeds: dict[str, int | None] = {}
    for name, node in nodes.items().items():
        if name == IMPORTED or name not in STUDIED:
            node.fail(f"unknown family {name!r}, expected one of {', '.join(STUDIED)}")
        if node.value == _ALL:
            if not STUDIED[name].is_finite:
                node.fail(f"expected a number of seeds, got {_ALL!r}: the family has no fixed size")
            seeds[name] = None
        else:
            seeds[name] = node.integer(0)
    return seeds


def _assignors(nodes: ConfigNode) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for node in nodes.elements():
        try:
            name = complete_name(node.text())
            check_shown_names([*names, name])
        except InputError as error:
            node.fail(str(error))
        if name in names:
            node.fail(f"the assignor {name!r} is repeated")
        names[name] = None
    return tuple(names)


def _limits(nodes: ConfigNode) -> CaseLimits:
    known = {item.name: item.type for item in fields(CaseLimits)}
    chosen: dict[str, Any] = {}
    for name, node in nodes.only(*known).items():
        value: Any = node.value
        if known[name] in (int, int | None):
            value = node.integer(1)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            node.fail(f"expected a number, got {value!r}")
        elif not 0 < value < float("inf"):
            node.fail(f"must be above 0, got {value!r}")
        chosen[name] = value
    return CaseLimits(**chosen)


_PACKAGES = ("kassay", "ortools", "networkx", "numpy", "pandas", "pyarrow", "pyspark", "pyyaml")


def manifest(
    described: Mapping[str, object], *, rows: Mapping[str, int], run: Mapping[str, object]
) -> dict[str, object]:
    """Return the manifest of a study as a JSON object.

    ``run`` contains the facts that differ between runs.
    """
    return {
        "configuration": dict(described),
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in _PACKAGES},
        "commit": commit(),
        "tags": tags(),
        "rows": dict(rows),
        "run": dict(run),
    }


_CHECKOUT = Path(__file__).parents[2]


def commit(folder: Path = _CHECKOUT) -> str | None:
    """Return the Git commit of a checkout, with ``+`` for local changes, or None."""
    head = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return head and head + ("+" if changes else "")


def tags() -> list[str]:
    """Return the Git tags of the commit of this checkout."""
    return (_git(_CHECKOUT, "tag", "--points-at", "HEAD") or "").split()


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            command, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
