"""Failed Maven downloads are one error, and groups get their share of an executor's memory."""

import os
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkRuntimeError

from kassay.experiments.spark.session import captured_stderr, memory_per_task
from kassay.reference.model.errors import RunError

REPORT = b""":: problems summary ::
\tmodule not found: a#b;1
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: a#b;1: not found]
\tat org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:539)
"""


def _fail(*, output: bytes) -> None:
    with captured_stderr("a:b:1"):
        os.write(2, output)
        raise PySparkRuntimeError("it ended")


def test_the_error_contains_the_reason_of_spark(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunError, match="package a:b:1: unresolved dependency: a#b;1: not"):
        _fail(output=REPORT)
    os.write(2, b"later output")
    assert capfd.readouterr().err == "later output"


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
