"""Cases and sources of tests in files of the folder ``tests/data``."""

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


def stored_cases(name: str) -> Any:
    """Return the content of a JSON file: a list with one case per line, or an object."""
    return json.loads((DATA / "cases" / f"{name}.json").read_text(encoding="utf-8"))


def java_source(name: str) -> str:
    """Return the source of a Java class in the folder ``tests/data/java``."""
    return (DATA / "java" / f"{name}.java").read_text(encoding="utf-8")
