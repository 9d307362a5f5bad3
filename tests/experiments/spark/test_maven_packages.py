"""Packages that Spark cannot fetch are one error, and what it says otherwise is passed on."""

import os

import pytest
from pyspark.errors import PySparkRuntimeError

from kassay.experiments.spark.maven_packages import captured_stderr
from kassay.reference.model.errors import InputError

REPORT = b""":: problems summary ::
\tmodule not found: a#b;1
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: a#b;1: not found]
\tat org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:539)
"""


def _fail(*, saying: bytes) -> None:
    with captured_stderr("a:b:1"):
        os.write(2, saying)
        raise PySparkRuntimeError("it ended")


def test_the_reason_is_picked_out_of_the_report(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="package a:b:1: unresolved dependency: a#b;1: not"):
        _fail(saying=REPORT)
    os.write(2, b"heard again")
    assert capfd.readouterr().err == "heard again"


def test_without_a_reason_the_error_itself_is_told() -> None:
    with pytest.raises(InputError, match=r"package a:b:1: .*it ended"):
        _fail(saying=b"")


def test_error_output_is_ones_own_again_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    with captured_stderr("a:b:1"):
        os.write(2, b"jar after jar\n" * 1000)
    os.write(2, b"an error\n")
    assert capfd.readouterr().err == "an error\n"
