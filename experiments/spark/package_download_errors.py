"""Capture Spark's output during Maven downloads, and report failures as one error."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkRuntimeError

from kassay.reference.model.errors import RunError

PACKAGES = "spark.jars.packages"
_REASON = re.compile(
    r"^(?:Exception in thread .*?: )?.*?(unresolved dependency: .*|requirement .*)$"
)


@contextmanager
def captured_stderr(packages: str) -> Iterator[None]:
    """Hide standard error during Spark's start, which prints hundreds of lines per jar.

    The output of processes that are started in the block, such as Spark's JVM, stays hidden
    after the block. If Spark does not start, a `RunError` contains its reason.
    """
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as output:
        os.dup2(output.fileno(), 2)
        try:
            yield
        except PySparkRuntimeError as error:
            output.seek(0)
            reason = _reason(output.read().decode(errors="replace").splitlines()) or error
            raise RunError(f"Spark did not start with the package {packages}: {reason}") from None
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _reason(lines: list[str]) -> str | None:
    """Find the reason for a failed start in the captured output of Spark."""
    found = [match[1].rstrip("]") for line in lines if (match := _REASON.match(line))]
    if found:
        return found[0]
    exceptions = [line for line in lines if line.startswith("Exception in thread")]
    return exceptions[0].partition(": ")[2] if exceptions else None
