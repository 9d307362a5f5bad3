"""Read and verify output directories of ``kassay study`` and ``kassay history``."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from kassay.experiments.study.schemas import CASES, KEY, LISTS, POSITION, TABLES
from kassay.reference.model.errors import InputError

MANIFESTS = "manifest"
"""Name of the folder with the manifests of an output directory, one per run."""
_NO_STUDY = "contains no output of kassay study; give the directory of its --output option"
_SHOWN_FILES = 5
_BATCH = re.compile(r"batch=(\d+)")


class FileState(NamedTuple):
    """Size and SHA-256 digest of a file."""

    bytes: int
    sha256: str


FileDigests = dict[str, FileState]
"""Size and digest of each file, by its path relative to the output directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySummary:
    """Summary of a study: tables of counts, and the groups with the largest gaps."""

    families: pd.DataFrame
    outcomes: pd.DataFrame
    pairs: pd.DataFrame
    trajectories: pd.DataFrame
    events: pd.DataFrame
    fronts: pd.DataFrame
    measures: pd.DataFrame
    run_times: pd.DataFrame
    worst: Sequence[Mapping[str, Any]]
    manifest: Mapping[str, Any]


_COUNT_TABLES = [each.name for each in fields(StudySummary) if each.type is pd.DataFrame]


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read the newest valid manifest of an output directory, or raise InputError."""
    runs = sorted((directory / MANIFESTS).glob("run=*"), reverse=True)
    for run in runs:
        for part in sorted(run.glob("part-*")):
            try:
                document = json.loads(part.read_text(encoding="utf-8"))
            except ValueError:
                continue
            if isinstance(document, dict) and isinstance(document.get("files"), dict):
                return document
    reason = "no manifest can be read" if runs else "there is no manifest"
    batches = len({path.parent for path in directory.glob("cases/*/batch=*/run=*")})
    written = f" (batches written: {batches})" if batches else ""
    raise InputError(
        f"{directory}: {reason}, so the output is incomplete{written}; "
        "repeat the command that wrote it"
    )


def digest_local_files(directory: Path, folders: Iterable[str]) -> FileDigests:
    """Return the size and SHA-256 of each file in the given folders of an output directory."""
    found: FileDigests = {}
    for folder in folders:
        for path in sorted((directory / folder).rglob("*")):
            relative = path.relative_to(directory)
            if path.is_file() and not any(part.startswith(("_", ".")) for part in relative.parts):
                with path.open("rb") as stream:
                    sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
                found[relative.as_posix()] = FileState(path.stat().st_size, sha256)
    return found


def damaged_files(
    directory: Path, manifest: Mapping[str, Any], found: FileDigests | None
) -> dict[str, str]:
    """Return a description of each file that differs from the manifest, by file name.

    ``found`` has the digests of the files; None: they are computed from ``directory``.
    """
    found = digest_local_files(directory, manifest["folders"]) if found is None else found
    expected = {name: FileState(*state) for name, state in manifest["files"].items()}
    damage = {}
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            damage[name] = "is missing"
        elif name not in expected:
            damage[name] = "does not belong to the output"
        elif found[name].bytes != expected[name].bytes:
            damage[name] = f"has {found[name].bytes} bytes instead of {expected[name].bytes}"
        elif found[name] != expected[name]:
            damage[name] = "has changed content"
    return damage


def verified_manifest(
    directory: Path, *, found: FileDigests | None = None, partial: bool = False
) -> dict[str, Any]:
    """Read the newest manifest of an output directory, and verify the files that it lists.

    Without ``found``, the digests of all files are computed. With ``partial``, damaged cases of a
    study are ignored; its summary, computed from undamaged cases, is always verified. Raise
    `InputError` if there is no complete manifest, or if files are damaged.
    """
    manifest = read_manifest(directory)
    damage = damaged_files(directory, manifest, found)
    if partial:
        damage = {name: text for name, text in damage.items() if not name.startswith("cases/")}
    if damage:
        batches = sorted({int(number) for name in damage for number in _BATCH.findall(name)})
        shown = [f"{name} {text}" for name, text in list(damage.items())[:_SHOWN_FILES]]
        if len(damage) > _SHOWN_FILES:
            shown.append(f"{len(damage) - _SHOWN_FILES} more files")
        named = f"damaged batches: {', '.join(map(str, batches))}; " if batches else ""
        raise InputError(
            f"{directory}: {named}{'; '.join(shown)}; repeat the command that wrote the output"
        )
    return manifest


def read(path: Path | str) -> dict[str, pd.DataFrame]:
    """Read the tables of a finished study as pandas data frames, by table name.

    All rows are loaded into memory. For larger studies, ``study_tables`` reads them with Spark.

    Parameters
    ----------
    path
        Local output directory of ``kassay study``.

    Raises
    ------
    InputError
        If the directory has no complete output of a study, or if a file is missing or changed.
    """
    directory = Path(path).expanduser()
    if not directory.is_dir():
        raise InputError(f"{path}: no such local directory; give an output of kassay study")
    files = [name for name in verified_manifest(directory)["files"] if name.startswith("cases/")]
    if not files:
        raise InputError(f"{directory} {_NO_STUDY}")
    paths = [str(directory / name) for name in files]
    cases = pyarrow.dataset.dataset(paths, schema=CASES, format="parquet")
    return {name: _frame(_rows(cases, name)) for name in TABLES}


def _rows(cases: pyarrow.dataset.Dataset, name: str) -> pa.Table:
    columns = {each: pc.field(each) for each in (POSITION, name)} | {KEY: pc.field("groups", KEY)}
    table = cases.to_table(columns=columns).sort_by(POSITION)
    keys, rows = table[KEY], table[name]
    if name in LISTS:
        keys, rows = keys.take(pc.list_parent_indices(rows)), pc.list_flatten(rows)
    else:
        keys, rows = keys.filter(rows.is_valid()), rows.drop_null()
    found = pa.Table.from_struct_array(rows)
    return found if KEY in found.column_names else found.add_column(0, KEY, keys)


def load_summary(directory: Path, manifest: Mapping[str, Any] | None = None) -> StudySummary:
    """Read the summary of a study from its output directory.

    If ``manifest`` is None, the function also reads the manifest and verifies the files.
    """
    manifest = manifest or verified_manifest(directory)
    if "summary" not in manifest:
        raise InputError(f"{directory} {_NO_STUDY}")
    root = directory / manifest["summary"]
    return StudySummary(
        **{name: read_table(root / name) for name in _COUNT_TABLES},
        worst=_arrow_table(root / "worst").sort_by("rank").to_pylist(),
        manifest=manifest,
    )


def read_table(path: Path, columns: list[str] | None = None) -> pd.DataFrame:
    """Read a Parquet table, or some columns of it, as a pandas data frame."""
    return _frame(_arrow_table(path, columns))


def _frame(table: pa.Table) -> pd.DataFrame:
    types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    types[pa.float64()] = pd.Float64Dtype()
    frame: pd.DataFrame = table.to_pandas(types_mapper=types.get)
    return frame


def _arrow_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    if not path.is_dir():
        raise InputError(f"{path}: the table does not exist; run kassay study to write it")
    return pyarrow.dataset.dataset(path, format="parquet").to_table(columns=columns)
