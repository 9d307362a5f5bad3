"""Reader of the Parquet tables and the manifest of a study."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow.dataset

from kassay.reference.model.errors import InputError

MANIFEST = "manifest.json"
NO_COPIES = ("mode.copy_on_write", True)
"""The pandas option, standard in pandas 3, that copies data only when it is changed."""
# None reads all columns. A study of a million groups has nine million assignments.
_COLUMNS = {
    "groups": None,
    "assignments": ["case", "assignor", "assignment"],
    "optima": ["case", "status", "assignment"],
    "comparisons": None,
}
_CATEGORIES = ("case", "family", "assignor", "ending")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Tables of a study. ``assignments`` and ``optima`` have only columns that reports use."""

    groups: pd.DataFrame
    assignments: pd.DataFrame
    optima: pd.DataFrame
    comparisons: pd.DataFrame
    manifest: dict[str, object]


def load_tables(directory: Path) -> Tables:
    """Read the tables that ``kassay study`` wrote."""
    manifest = directory / MANIFEST
    if not manifest.is_file():
        raise InputError(f"{directory}: the file {MANIFEST} is missing, so the study is incomplete")
    try:
        document = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{manifest}: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f"{manifest} must contain a JSON object")
    tables = {
        name: read_table(directory / name, columns, categories=_CATEGORIES)
        for name, columns in _COLUMNS.items()
    }
    pyarrow.default_memory_pool().release_unused()
    return Tables(**tables, manifest=document)


def read_table(
    path: Path, columns: list[str] | None = None, *, categories: Sequence[str] = ()
) -> pd.DataFrame:
    """Read a Parquet table or some columns. Convert ``categories`` to categorical columns."""
    if not path.is_dir():
        raise InputError(f"{path}: the table does not exist")
    dataset = pyarrow.dataset.dataset(path, format="parquet", exclude_invalid_files=True)
    table = dataset.to_table(columns=columns)
    for place, name in enumerate(table.column_names):
        if name in categories:
            table = table.set_column(place, name, table[name].dictionary_encode())
    types = {
        pyarrow.int64(): pd.Int64Dtype(),
        pyarrow.bool_(): pd.BooleanDtype(),
        pyarrow.float64(): pd.Float64Dtype(),
    }
    frame: pd.DataFrame = table.to_pandas(types_mapper=types.get)
    return frame
