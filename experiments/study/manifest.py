"""What a study was: enough to run it again and to tell whether it is the same."""

import hashlib
import importlib.metadata
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from kassay.experiments.compare import CaseLimits
from kassay.experiments.study.case import IMPORTED, Case
from kassay.experiments.study.families.registry import FAMILIES

_PACKAGES = ("kassay", "ortools", "networkx", "numpy", "pandas", "pyarrow", "pyspark", "pyyaml")


def configuration(
    cases: Iterable[Case],
    *,
    families: Sequence[str],
    seeds: int,
    first_seed: int,
    assignors: Sequence[str],
    limits: CaseLimits,
    study: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Describe a study: equal descriptions and versions give equal tables.

    Parameters
    ----------
    cases
        All of its cases; the imported ones enter by their content.
    families, seeds, first_seed, assignors
        What `cases_of` was given.
    limits
        What each search may use up.
    study
        What the study's own file says, if it has one.
    """
    digest = hashlib.sha256()
    imported = 0
    for case in cases:
        if case.document is not None:
            digest.update(case.document.encode() + b"\n")
            imported += 1
    described: dict[str, object] = {
        "seeds": seeds,
        "first_seed": first_seed,
        "imported_groups": imported,
        "assignors": list(assignors),
        "limits": asdict(limits),
        "families": [FAMILIES[name].parameters() for name in families],
    }
    if imported:
        described["families"] = [*described["families"], {"name": IMPORTED}]  # type: ignore[misc]
        described["imported_sha256"] = digest.hexdigest()
    if study is not None:
        described["study"] = dict(study)
    return described


def manifest(
    described: Mapping[str, object], *, rows: Mapping[str, int], run: Mapping[str, object]
) -> dict[str, object]:
    """Return the manifest: configuration, versions and commit, rows, and this run.

    Parameters
    ----------
    described
        The `configuration`.
    rows
        Rows of each table.
    run
        Facts of this run alone: master, tasks, seconds.
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
    """Return the commit of this checkout, with ``+`` where files differ from it."""
    root = Path(__file__).parents[2]
    try:
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(  # noqa: S603 - fixed arguments
        ["git", "-C", str(root), *arguments],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()
