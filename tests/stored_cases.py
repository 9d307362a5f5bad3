"""Cases of tests in files of the folder ``tests/data/cases``."""

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "data" / "cases"


def stored_cases(name: str) -> Any:
    """Return the content of a JSON file: a list with one case per line, or an object."""
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
