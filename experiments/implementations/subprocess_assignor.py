"""A process that answers lines with lines, kept alive from one group to the next."""

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
_LONGEST_ANSWER = 1 << 28  # bytes
_SHOWN = 200  # characters


class NoAnswerError(RunError):
    """The process did not answer: it ran out of time, died, or cannot be started."""


class _EndedError(NoAnswerError):
    """The process ended, or closed its output."""


class Conversation:
    """One process and what passes between it and us.

    It starts with the first question. After a question that it did not answer it is
    killed, its children too, and the next question starts another. One that ended after an
    answer is started again and asked again.

    Parameters
    ----------
    command
        What to start, argument by argument; no shell reads it.
    """

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._answered = False

    def ask(self, line: str, *, seconds: float) -> str:
        """Send a line and wait for the line that answers it.

        Raises
        ------
        NoAnswerError
            If there is none within so many seconds of wall-clock time, with what the
            process last said on standard error.
        """
        again = self._answered
        try:
            return self._ask(line, seconds)
        except _EndedError:
            if not again:
                raise
        # It may answer a single line in its life, as many a script does.
        return self._ask(line, seconds)

    def _ask(self, line: str, seconds: float) -> str:
        process = self._started()
        try:
            answer = _exchange(process, line.encode() + b"\n", seconds)
        except _EndedError as error:
            raise _EndedError(self._last_words(str(error), _exit_code(process))) from None
        except NoAnswerError as error:
            raise NoAnswerError(self._last_words(str(error), process.poll())) from None
        self._answered = True
        return answer

    def close(self) -> None:
        """Kill the process and whatever it started."""
        process, self._process, self._answered = self._process, None, False
        if process is not None:
            _kill(process)
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
            try:
                self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    bufsize=0,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                self.close()
                reason = getattr(error, "strerror", None) or str(error)
                raise NoAnswerError(
                    f"cannot start {self._command[0]!r}: {reason.lower()}"
                ) from None
        return self._process

    def _last_words(self, message: str, code: int | None) -> str:
        if code is not None:
            name = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
            message = f"{message} ({name})"
        if self._errors is not None:
            self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, self._errors.tell() - 10 * _SHOWN))
            lines = self._errors.read().decode(errors="replace").split("\n")
            said = next((text.strip() for text in reversed(lines) if text.strip()), "")
            message += f": {said[:_SHOWN]}" if said else ""
        self.close()
        return message


def _exchange(process: subprocess.Popen[bytes], question: bytes, seconds: float) -> str:
    """Write and read at once: a process may answer before it has read everything."""
    source, sink = _pipe(process.stdout), _pipe(process.stdin)
    deadline = time.monotonic() + seconds
    os.set_blocking(sink, False)
    answer = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        if selector.select(0) and os.read(source, _CHUNK):
            raise NoAnswerError("more than one line of answer to the group before")
        selector.register(sink, selectors.EVENT_WRITE)
        while not answer.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0:
                raise NoAnswerError(f"no answer in time, {seconds:g} seconds")
            for key, _ in selector.select(left):
                if key.fd == source:
                    answer += _read(source, so_far=len(answer))
                    continue
                question = _written(sink, question)
                if not question:
                    selector.unregister(sink)
    if question:
        raise NoAnswerError("answered before it had read the group")
    if answer.count(b"\n") > 1:
        raise NoAnswerError("more than one line of answer")
    return answer.decode(errors="replace")


def _pipe(pipe: IO[bytes] | None) -> int:
    if pipe is None:
        raise NoAnswerError("the process has no pipes")
    return pipe.fileno()


def _read(source: int, *, so_far: int) -> bytes:
    if so_far > _LONGEST_ANSWER:
        raise NoAnswerError(f"more than {_LONGEST_ANSWER} bytes in a line of answer")
    chunk = os.read(source, _CHUNK)
    if not chunk:
        raise _EndedError("ended without an answer")
    return chunk


def _written(sink: int, question: bytes) -> bytes:
    try:
        return question[os.write(sink, question) :]
    except BlockingIOError:
        return question
    except OSError:
        raise _EndedError("ended without an answer") from None


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Return the code of a process that closed its pipes, so is about to end."""
    try:
        return process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()


_TALKING: dict[tuple[int, tuple[str, ...]], Conversation] = {}


def conversation(command: tuple[str, ...]) -> Conversation:
    """Return this process's conversation with a command; one goes on for good.

    A fork does not share it: two that speak to one process would read each other's answers.
    """
    key = (os.getpid(), command)
    if key not in _TALKING:
        _TALKING[key] = Conversation(command)
    return _TALKING[key]


@atexit.register
def end_conversations() -> None:
    """Kill the processes that this one started."""
    for (owner, _), talk in _TALKING.items():
        if owner == os.getpid():
            talk.close()
