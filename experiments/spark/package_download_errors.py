"""Capture Spark's output while it downloads Maven packages, and report one error."""

import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkRuntimeError

from kassay.reference.model.errors import RunError

PACKAGES = "spark.jars.packages"
_READ_SECONDS = 10.0
_REASON = re.compile(
    r"^(?:Exception in thread .*?: )?.*?(unresolved dependency: .*|requirement .*)$"
)


@contextmanager
def captured_stderr(packages: str) -> Iterator[None]:
    """Capture standard error while Spark starts, because it prints hundreds of lines per jar.

    Processes that are started in the block, such as Spark's JVM, keep writing to the captured
    stream. After the block, their output is forwarded to standard error. If Spark does not
    start, a `RunError` contains its reason.
    """
    stderr = os.dup(2)
    reader = _StderrReader(stderr)
    os.dup2(reader.write_end, 2)
    try:
        yield
    except PySparkRuntimeError as error:
        reader.finish()
        raise RunError(
            f"Spark did not start with the package {packages}: {_reason(reader.lines) or error}"
        ) from None
    finally:
        os.dup2(stderr, 2)
        reader.finish()
        os.close(reader.write_end)


class _StderrReader:
    """Thread that collects the lines of a pipe, and after `finish` forwards them."""

    def __init__(self, stderr: int) -> None:
        read_end, self.write_end = os.pipe()
        self.lines: list[str] = []
        self._stderr = stderr
        self._finished = threading.Event()
        self._end_marker = f"{secrets.token_hex(16)}\n"
        threading.Thread(target=self._read, args=(read_end,), daemon=True).start()

    def finish(self) -> None:
        """Wait until all output so far is read. Running processes keep the pipe open."""
        if not self._finished.is_set():
            os.write(self.write_end, f"\n{self._end_marker}".encode())
            self._finished.wait(_READ_SECONDS)

    def _read(self, read_end: int) -> None:
        with os.fdopen(read_end, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line == self._end_marker:
                    self._finished.set()
                elif self._finished.is_set():
                    os.write(self._stderr, line.encode())
                else:
                    self.lines.append(line.rstrip())


def _reason(lines: list[str]) -> str | None:
    """Return the line with the reason from a long report and a stack trace."""
    found = [match[1].rstrip("]") for line in lines if (match := _REASON.match(line))]
    if found:
        return found[0]
    exceptions = [line for line in lines if line.startswith("Exception in thread")]
    return exceptions[0].partition(": ")[2] if exceptions else None
