"""Study outputs as data frames."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import kassay
from kassay.experiments.spark.study_pipeline import study_tables
from kassay.experiments.study.schemas import KEY, TABLES

STUDY = Path(__file__).parents[3] / "examples" / "study"


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copytree(STUDY, tmp_path / "study"))


def manifest(directory):
    [file] = directory.glob("manifest/run=*/part-*")
    return file, json.loads(file.read_text())


def test_each_table_has_the_rows_that_the_manifest_counts():
    tables = kassay.read(STUDY)
    assert {name: len(table) for name, table in tables.items()} == manifest(STUDY)[1]["rows"]
    for name, table in tables.items():
        columns = TABLES[name].names
        assert [*table.columns] == (columns if KEY in columns else [KEY, *columns])
    gaps = tables["comparisons"]["movement_gap"]
    assert gaps.dtype == pd.Int64Dtype()
    assert 0 < gaps.isna().sum() < len(gaps)


@pytest.mark.spark
def test_the_tables_are_those_of_spark(spark, study_directory):
    """One case of this study has no optimum, and its batches are several files."""
    tables = kassay.read(study_directory)
    for name, expected in study_tables(spark, str(study_directory)).items():
        rows = [tuple(row) for row in expected.collect()]
        found = tables[name].astype(object).where(tables[name].notna(), None)
        assert {*found.itertuples(index=False, name=None)} == {*rows}, name
        assert len(found) == len(rows)
    assert len(tables["optima"]) == len(tables["groups"]) - 1


def _remove_cases(directory):
    next(directory.glob("cases/**/*.parquet")).unlink()


def _change_cases(directory):
    file = next(directory.glob("cases/**/*.parquet"))
    content = file.read_bytes()
    file.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])


def _shorten_manifest(directory):
    file, _ = manifest(directory)
    file.write_bytes(file.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "no such local directory"),
        (_remove_cases, r"damaged batches: 0; cases/\S+ is missing; repeat the command"),
        (_change_cases, r"damaged batches: 0; cases/\S+ has changed content; repeat the"),
        (_shorten_manifest, "no manifest can be read, so the output is incomplete"),
        (lambda folder: shutil.rmtree(folder / "manifest"), "there is no manifest, so the"),
    ],
)
def test_a_missing_incomplete_or_damaged_directory_is_one_error(copy, damage, message):
    damage(copy)
    with pytest.raises(kassay.InputError, match=message) as failed:
        kassay.read(copy)
    assert str(failed.value).startswith(str(copy))


def test_the_output_of_a_history_is_no_study(copy):
    file, document = manifest(copy)
    shutil.rmtree(copy / "cases")
    kept = {name: state for name, state in document["files"].items() if "cases/" not in name}
    file.write_text(json.dumps({**document, "files": kept}))
    with pytest.raises(kassay.InputError, match="contains no output of kassay study"):
        kassay.read(copy)
