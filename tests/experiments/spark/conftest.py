from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassay.experiments.spark.session import spark_session
from kassay.experiments.spark.study_schemas import TABLES


def table_files(directory: Path) -> dict[Path, bytes]:
    """Return the files of all tables of a study except the timings."""
    return {
        path.relative_to(directory): path.read_bytes()
        for name in TABLES
        if name != "timings"
        for path in sorted((directory / name).iterdir())
    }


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session(master="local[2]") as session:
        yield session
