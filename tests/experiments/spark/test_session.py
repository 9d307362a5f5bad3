"""Groups get their share of an executor's memory."""

from unittest.mock import MagicMock

import pytest

from kassay.experiments.spark.session import memory_per_task


@pytest.mark.parametrize(
    ("memory", "cores", "expected"),
    [("8g", "2", 4096), ("6144m", None, 6144), (None, None, 1024), ("2g", "4", 1024)],
)
def test_a_group_may_use_the_memory_of_one_executor_core(
    memory: str | None, cores: str | None, expected: int
) -> None:
    properties = {
        "spark.master": "spark://host:7077",
        "spark.executor.memory": memory,
        "spark.executor.cores": cores,
    }
    spark = MagicMock()
    spark.conf.get.side_effect = lambda key, _: properties[key]
    assert memory_per_task(spark) == expected
