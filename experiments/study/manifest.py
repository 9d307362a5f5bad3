"""Manifest of a study: the configuration and versions that a repetition needs."""

import importlib.metadata
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from kassay.experiments.comparison.optimum import CaseLimits
from kassay.experiments.study.case import IMPORTED, ImportedCases
from kassay.experiments.study.families.registry import FAMILIES

_PACKAGES = ("kassay", "ortools", "networkx", "numpy", "pandas", "pyarrow", "pyspark", "pyyaml")


def configuration(
    imported: ImportedCases,
    *,
    families: Sequence[str],
    seeds: int,
    first_seed: int,
    assignors: Sequence[str],
    limits: CaseLimits,
    study: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Describe the configuration of a study. Equal configurations give equal tables.

    Imported groups are described by the bitwise XOR of the ids of their documents. ``study`` is
    `StudyConfig.described`.
    """
    described_families = [FAMILIES[name].parameters() for name in families]
    described: dict[str, object] = {
        "seeds": seeds,
        "first_seed": first_seed,
        "imported_groups": len(imported),
        "assignors": list(assignors),
        "limits": {name: value for name, value in asdict(limits).items() if name != "stop"},
        "families": described_families,
    }
    if len(imported):
        described_families.append({"name": IMPORTED})
        described["imported_digest"] = f"{imported.digest:015x}"
    if study is not None:
        described["study"] = dict(study)
    return described


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
        "rows": dict(rows),
        "run": dict(run),
    }


def commit() -> str | None:
    """Return the Git commit of this checkout, with ``+`` for uncommitted changes."""
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603 - fixed arguments
        ["git", "-C", str(Path(__file__).parents[2]), *arguments],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()
