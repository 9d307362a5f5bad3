"""Files of records are found in directories, and other files are an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from kassay.experiments.spark.history_pipeline import record_files
from kassay.reference.model.errors import InputError
from tests.stored_cases import stored_cases


def write(directory: Path, *names: str) -> None:
    for name in names:
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"PAR1" if name.endswith(".parquet") else b"Dumping")


def test_a_directory_may_contain_dumps_and_parquet_files(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", "b.txt")
    assert record_files(tmp_path) == ([tmp_path / "b.txt"], [tmp_path / "a.parquet"])


@pytest.mark.parametrize(("name", "message"), stored_cases("paths_without_records"))
def test_a_path_without_records_is_one_error(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path, "groups.json")
    (tmp_path / "members.txt").write_text("GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS\n")
    with pytest.raises(InputError, match=message):
        record_files(tmp_path / name)
