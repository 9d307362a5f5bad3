"""Output of Maven downloads is captured, and a failed download is one error."""

import os

import pytest
from pyspark.errors import PySparkRuntimeError

from kassay.experiments.spark.session import captured_stderr
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
