"""Run assignors as processes that read and write one JSON line per group."""

import atexit
import os
import selectors
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from typing import IO

from kassay.reference.model.errors import RunError

_CHUNK = 1 << 16
_MAX_RESPONSE_BYTES = 1 << 28
_SHOWN_CHARACTERS = 200


class NoAnswerError(RunError):
    """Error: an assignor process timed out, ended, could not start or gave an invalid answer."""


class _EndedError(NoAnswerError):
    """Error: an assignor process ended or closed its standard output."""


class TimeLimitError(NoAnswerError):
    """Error: an assignor process wrote no line within the time limit."""


class NotReadyError(RunError):
    """Error: the driver of a library did not start. This is no result of an assignor."""


class AssignorProcess:
    """An assignor process that writes one output line per input line.

    It starts with the first request. If it does not answer, it is killed with its children,
    and the next request starts a new process.

    ``start_seconds`` is None for the program of a user. A driver writes one line when it is
    ready, and has this time limit for the line; a driver that ends is not started again for the
    same group.
    """

    def __init__(self, command: tuple[str, ...], *, start_seconds: float | None = None) -> None:
        self._command = command
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._has_answered = False

    def request(self, line: str, *, seconds: float) -> str:
        """Send an input line to the process, and return its output line within ``seconds``.

        A process that ended after an earlier answer is started again, because some programs
        read only one line. The message of `NoAnswerError` ends with the last line on stderr.
        """
        may_restart = self._has_answered and self._start_seconds is None
        try:
            return self._request(line, seconds)
        except _EndedError:
            if not may_restart:
                raise
        return self._request(line, seconds)

    def close(self) -> None:
        """Kill the assignor process and its child processes."""
        process, self._process, self._has_answered = self._process, None, False
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def _request(self, line: str, seconds: float) -> str:
        process = self._process or self._start()
        try:
            response = _exchange(process, line.encode() + b"\n", seconds)
        except NoAnswerError as error:
            raise type(error)(self._close_after(error, process)) from None
        self._has_answered = True
        return response

    def _close_after(self, error: NoAnswerError, process: subprocess.Popen[bytes]) -> str:
        """Close the process after an error, and return the complete message."""
        exit_code = process.poll()
        if isinstance(error, _EndedError):
            # The process closed its pipes, so it is about to end.
            with suppress(subprocess.TimeoutExpired):
                exit_code = process.wait(timeout=1)
        message = self._describe_failure(str(error), exit_code)
        self.close()
        return message

    def _start(self) -> subprocess.Popen[bytes]:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or str(error)
            message = f"cannot start {self._command[0]!r}: {reason.lower()}"
            if self._start_seconds is not None:
                raise NotReadyError(f"{message}; see kassay libraries") from None
            raise NoAnswerError(message) from None
        process = self._process
        if self._start_seconds is not None:
            try:
                _exchange(process, b"", self._start_seconds)
            except NoAnswerError as error:
                message = self._close_after(error, process)
                raise NotReadyError(f"{self._command[0]!r} is not ready: {message}") from None
        return process

    def _describe_failure(self, message: str, exit_code: int | None) -> str:
        if exit_code is not None:
            cause = (
                f"exit code {exit_code}"
                if exit_code >= 0
                else f"signal {signal.Signals(-exit_code).name}"
            )
            message = f"{message} ({cause})"
        if self._stderr is None:
            return message
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - 10 * _SHOWN_CHARACTERS))
        lines = self._stderr.read().decode(errors="replace").split("\n")
        last = next((text.strip() for text in reversed(lines) if text.strip()), "")
        return f"{message}: {last[:_SHOWN_CHARACTERS]}" if last else message


def _exchange(process: subprocess.Popen[bytes], unsent: bytes, seconds: float) -> str:
    """Write a request to an assignor process, and read the answer at the same time.

    An empty request only waits for a line.
    """
    if process.stdout is None or process.stdin is None:
        raise NoAnswerError("the assignor process has no pipes for input and output")
    source, sink = process.stdout.fileno(), process.stdin.fileno()
    deadline = time.monotonic() + seconds
    os.set_blocking(sink, False)
    response = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        if unsent and selector.select(0) and os.read(source, _CHUNK):
            raise NoAnswerError("the process wrote more than one line for the previous group")
        selector.register(sink, selectors.EVENT_WRITE)
        while not response.endswith(b"\n"):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeLimitError(f"the process wrote no assignment within {seconds:g} seconds")
            for key, _ in selector.select(remaining):
                if key.fd == source:
                    response += _read(source, received=len(response))
                    continue
                unsent = _write(sink, unsent)
                if not unsent:
                    selector.unregister(sink)
    if unsent:
        raise NoAnswerError("the process wrote an assignment before it read the group")
    if response.count(b"\n") > 1:
        raise NoAnswerError("the process wrote more than one line for one group")
    return response.decode(errors="replace")


def _read(source: int, *, received: int) -> bytes:
    if received > _MAX_RESPONSE_BYTES:
        raise NoAnswerError(f"the output line of the process exceeds {_MAX_RESPONSE_BYTES} bytes")
    chunk = os.read(source, _CHUNK)
    if not chunk:
        raise _EndedError("the process ended without writing an assignment")
    return chunk


def _write(sink: int, data: bytes) -> bytes:
    """Write as many bytes as the pipe ``sink`` accepts, and return the remaining bytes."""
    try:
        return data[os.write(sink, data) :]
    except BlockingIOError:
        return data
    except OSError:
        raise _EndedError("the process ended without writing an assignment") from None


_PROCESSES: dict[tuple[int, tuple[str, ...]], AssignorProcess] = {}


def assignor_process(
    command: tuple[str, ...], *, start_seconds: float | None = None
) -> AssignorProcess:
    """Return the process that runs an assignor command. Equal commands share one process.

    A forked kassay process starts its own, because two readers would take each other's answers.
    """
    process = AssignorProcess(command, start_seconds=start_seconds)
    return _PROCESSES.setdefault((os.getpid(), command), process)


@atexit.register
def close_processes() -> None:
    """Kill the assignor processes that this process started, with their child processes."""
    for (owner, _), process in _PROCESSES.items():
        if owner == os.getpid():
            process.close()
