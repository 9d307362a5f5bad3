"""Examples in docstrings print what they show."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "reference": "kassay.",
    "solver": "kassay.",
    "experiments": "kassay.",
    "benchmarks": "",
    "tools": "",
}
"""Prefix of the names of modules, by folder."""
MODULES = sorted(
    prefix + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder, prefix in FOLDERS.items()
    for path in (ROOT / folder).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", ["kassay", *MODULES])
def test_docstring_examples(name: str):
    module = importlib.import_module(name.removesuffix(".__init__"))
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert tried
    assert not failed
