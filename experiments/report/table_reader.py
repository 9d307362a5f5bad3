"""The tables of a study, read back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow.dataset

from kassay.reference.model.errors import InputError

MANIFEST = "manifest.json"
# A study of a million groups has nine million assignments, and few that are kept whole.
_COLUMNS = {
    "groups": None,
    "assignments": ["case", "assignor", "assignment"],
    "optima": ["case", "status", "assignment"],
    "comparisons": None,
}
SPARING = ("mode.copy_on_write", True)
"""Pandas' option not to copy what is only passed on, which pandas 3 has for good."""
_KEYS = ("case", "family", "assignor", "ending")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What pages tell a study by: four of its tables and its manifest.

    Parameters
    ----------
    groups, comparisons
        Two whole tables. Integers that may be absent are pandas' ``Int64``, and what rows
        are picked by, as ``case`` and ``assignor``, are categories.
    assignments, optima
        Whose each assignment is, and the assignment where it was kept; of optima, the
        status too.
    manifest
        What the study was: configuration, seeds, versions.
    """

    groups: pd.DataFrame
    assignments: pd.DataFrame
    optima: pd.DataFrame
    comparisons: pd.DataFrame
    manifest: dict[str, object]


def load_tables(directory: Path) -> Tables:
    """Read the tables that ``kassay study`` wrote.

    Raises
    ------
    InvalidGroupError
        If the directory holds no complete study.
    """
    manifest = directory / MANIFEST
    if not manifest.is_file():
        raise InputError(f"{directory}: no {MANIFEST} in it, so no complete study")
    try:
        document = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{manifest}: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f"{manifest}: expected an object")
    found = {
        name: read_table(directory / name, columns, keys=_KEYS)
        for name, columns in _COLUMNS.items()
    }
    pyarrow.default_memory_pool().release_unused()
    return Tables(**found, manifest=document)


def read_table(
    path: Path, columns: list[str] | None = None, *, keys: Sequence[str] = ()
) -> pd.DataFrame:
    """Read one table, or some of its columns; ``keys`` become categories if they are there.

    Raises
    ------
    InvalidGroupError
        If it is not there.
    """
    if not path.is_dir():
        raise InputError(f"{path}: no such table")
    dataset = pyarrow.dataset.dataset(path, format="parquet", exclude_invalid_files=True)
    table = dataset.to_table(columns=columns)
    for place, name in enumerate(table.column_names):
        if name in keys:
            table = table.set_column(place, name, table[name].dictionary_encode())
    frame: pd.DataFrame = table.to_pandas(types_mapper=_types().get)
    return frame


def _types() -> dict[pyarrow.DataType, object]:
    return {
        pyarrow.int64(): pd.Int64Dtype(),
        pyarrow.bool_(): pd.BooleanDtype(),
        pyarrow.float64(): pd.Float64Dtype(),
    }
