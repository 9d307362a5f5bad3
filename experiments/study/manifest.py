"""Manifest of a study: the configuration and versions that a repetition needs."""

import importlib.metadata
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path

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


def commit() -> str | None:
    """Return the Git commit of this checkout, with ``+`` for uncommitted changes."""
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+" if changed else "")


def tags() -> list[str]:
    """Return the Git tags of the commit of this checkout."""
    try:
        return _git("tag", "--points-at", "HEAD").split()
    except (OSError, subprocess.SubprocessError):
        return []


def _git(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603 - fixed arguments
        ["git", "-C", str(Path(__file__).parents[2]), *arguments],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()
