from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kassay.experiments.spark.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session(master="local[2]") as session:
        yield session
