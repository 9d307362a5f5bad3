"""Failed Maven downloads are one error, and groups get their share of an executor's memory."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkRuntimeError

from kassay.experiments.spark.session import captured_stderr, hidden_stderr, memory_per_task
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


def test_without_a_reason_the_error_contains_the_exception() -> None:
    with pytest.raises(RunError, match=r"package a:b:1: .*it ended"):
        _fail(output=b"")


def test_standard_error_is_restored_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    with captured_stderr("a:b:1"):
        os.write(2, b"jar after jar\n" * 1000)
    os.write(2, b"an error\n")
    assert capfd.readouterr().err == "an error\n"


def test_hidden_output_of_a_started_process_stays_hidden(
    capfd: pytest.CaptureFixture[str],
) -> None:
    command = [sys.executable, "-c", "import os; input(); os.write(2, b'line of a worker')"]
    with hidden_stderr():
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
    process.communicate(b"go\n")
    os.write(2, b"an error")
    assert capfd.readouterr().err == "an error"


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


@pytest.mark.long
def test_an_unavailable_package_is_one_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kassay", "study", "--cases", "1"]
    command += ["--output", str(tmp_path / "out"), "--conf", "spark.jars.packages=no:where"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    [error] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert error.startswith("kassay: Spark did not start with the package no:where: ")
