"""Run an assignor once, or until its assignment is stable."""

import atexit
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO, Any

import numpy as np

from kassay.experiments.implementations import assignor_names
from kassay.experiments.implementations.client_libraries import (
    driver_command,
    is_library_assignor,
    parse_library_assignor,
    split_alias,
)
from kassay.reference.assignors import KIND_PORTS, AssignorResult, run_assignor
from kassay.reference.documents.json_codec import group_document, parse_assignment
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.assignment import Assignment, rejoin, violations
from kassay.reference.model.errors import InputError, RunError, UpstreamError
from kassay.reference.model.group import Group, cached, topic_starts
from kassay.reference.model.joined_groups import SEPARATOR, join_assignments, split_group
from kassay.reference.model.topic_partitions import select

_CHUNK = 1 << 16
_MAX_RESPONSE_BYTES = 1 << 28
_SHOWN_CHARACTERS = 120
_STDERR_CHARACTERS = 200


class NoAnswerError(RunError):
    """Error: an assignor process did not start, ended, timed out or wrote invalid output."""


class _EndedError(NoAnswerError):
    """Error: an assignor process ended or closed its standard output."""


class TimeLimitError(NoAnswerError):
    """Error: an assignor process wrote no line within the time limit."""


class NotReadyError(RunError):
    """Error: the driver of a library did not start."""


class AssignorProcess:
    """Process that runs an assignor and writes one output line per input line.

    The process starts at the first request. If it does not answer, it is killed with its child
    processes, and the next request starts a new process.

    ``start_seconds`` is None for the program of a user. For a driver, it is the time limit for the
    line that the driver writes when it is ready. A driver that ends is not started again for the
    same group.
    """

    def __init__(self, command: tuple[str, ...], *, start_seconds: float | None = None) -> None:
        self._command = command
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._has_answered = False

    def request(self, line: str, *, seconds: float) -> str:
        """Send a line to the process, and return the line that the process writes in response.

        A process that ended after a previous response is started again, because some programs
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
        """Close the process, and return the message with its exit code and last stderr line."""
        if isinstance(error, _EndedError):
            # The process closed its pipes, so it is about to end.
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
        message, code = str(error), process.poll()
        if code is not None:
            cause = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
            message = f"{message} ({cause})"
        if self._stderr is not None:
            self._stderr.seek(0, os.SEEK_END)
            self._stderr.seek(max(0, self._stderr.tell() - 10 * _STDERR_CHARACTERS))
            lines = self._stderr.read().decode(errors="replace").split("\n")
            last = next((text.strip() for text in reversed(lines) if text.strip()), "")
            message = f"{message}: {last[:_STDERR_CHARACTERS]}" if last else message
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
                message += "; install the program, or repeat kassay libraries install"
                raise NotReadyError(message) from None
            raise NoAnswerError(message) from None
        process = self._process
        if self._start_seconds is not None:
            try:
                _exchange(process, b"", self._start_seconds)
            except NoAnswerError as error:
                message = self._close_after(error, process)
                raise NotReadyError(f"{self._command[0]!r} is not ready: {message}") from None
        return process


def _exchange(process: subprocess.Popen[bytes], unsent: bytes, seconds: float) -> str:
    """Send a request to an assignor process and read its response line.

    An empty request only waits for a line.
    """
    if process.stdout is None or process.stdin is None:
        raise NoAnswerError("internal error: the assignor process has no pipes; report a bug")
    source, sink = process.stdout.fileno(), process.stdin.fileno()
    deadline = time.monotonic() + seconds
    os.set_blocking(sink, False)
    response = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        if unsent and selector.select(0) and os.read(source, _CHUNK):
            text = "the process wrote more than one line for the previous group; write only one"
            raise NoAnswerError(text)
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
        text = "the process wrote an assignment before it read the group; read the line first"
        raise NoAnswerError(text)
    if response.count(b"\n") > 1:
        raise NoAnswerError("the process wrote more than one line for one group; write only one")
    return response.decode(errors="replace")


def _read(source: int, *, received: int) -> bytes:
    if received > _MAX_RESPONSE_BYTES:
        raise NoAnswerError(f"the output line of the process exceeds {_MAX_RESPONSE_BYTES} bytes")
    chunk = os.read(source, _CHUNK)
    if not chunk:
        raise _EndedError("the process ended without writing an assignment")
    return chunk


def _write(sink: int, data: bytes) -> bytes:
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
    """Return the process that runs a command, which is the same for equal commands.

    A forked process of kassay starts its own assignor processes: otherwise, two readers would get
    each other's responses.
    """
    process = AssignorProcess(command, start_seconds=start_seconds)
    return _PROCESSES.setdefault((os.getpid(), command), process)


@atexit.register
def close_processes() -> None:
    """Kill all assignor processes that this kassay process started."""
    for (owner, _), process in _PROCESSES.items():
        if owner == os.getpid():
            process.close()


_START_SECONDS = 60.0
"""Time limit in seconds for the start of a driver."""


def run(group: Group, assignor: str) -> AssignorResult:
    """Run an assignor once on a group, and return the assignment or the failure."""
    assignor_names.check_consumer_kind(assignor)
    driver = _driver(assignor)
    if driver is None:
        return run_assignor(group, split_alias(assignor)[1])
    has_members = bool(group.members) and is_library_assignor(assignor)
    if has_members and not any(member.subscription for member in group.members):
        # Consumers of librdkafka and sarama join no group without a topic: they never lead it.
        return AssignorResult(assignment=Assignment({member.id: () for member in group.members}))
    request = _shared_text(group) if driver.is_java else _document_text(group)
    if driver.assignor is not None:
        request = f'{{"assignor": {json.dumps(driver.assignor)}, "group": {request}}}'
    try:
        line = driver.process.request(request, seconds=driver.seconds)
    except TimeLimitError as error:
        if driver.assignor is None:
            return AssignorResult(failed=str(error))
        return AssignorResult(livelock=f"no assignment within {driver.seconds:g} seconds")
    except NoAnswerError as error:
        return AssignorResult(failed=str(error))
    return _parse_response(line)


@dataclass(frozen=True, slots=True)
class _Driver:
    """Process that runs an assignor, with its time limit per group in seconds.

    ``assignor`` is the assignor that a driver runs, or None for a command or a Python function.
    """

    process: AssignorProcess
    assignor: str | None
    seconds: float
    is_java: bool = False


def _driver(name: str) -> _Driver | None:
    """Return the process that runs an assignor, or None for a port."""
    if is_library_assignor(name):
        library = parse_library_assignor(name)
        process = assignor_process(driver_command(library), start_seconds=_START_SECONDS)
        is_java = library.library.runtime == "jvm"
        return _Driver(process, library.assignor.name, library.time_limit, is_java)
    if not assignor_names.is_custom_assignor(name):
        return None
    custom = assignor_names.parse_custom_assignor(name)
    if custom.java is None:
        return _Driver(assignor_process(custom.command), None, custom.seconds)
    process = assignor_process(custom.command, start_seconds=_START_SECONDS)
    return _Driver(process, f"class:{custom.java.name}", custom.seconds, is_java=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRunResult:
    """Answer, livelock or failure of one run on a document."""

    answer: Mapping[str, Any] | None = None
    livelock: str | None = None
    failed: str | None = None
    reason: str | None = None


def run_on_document(document: KindDocument, name: str) -> DocumentRunResult:
    """Run an assignor once on a document of share groups, Streams or Connect.

    ``failed`` is the class of the exception if the assignor throws one.
    """
    driver = _driver(name)
    if driver is None:
        try:
            return DocumentRunResult(answer=KIND_PORTS[split_alias(name)[1]].assign(document))
        except UpstreamError as error:
            return DocumentRunResult(failed=error.java_class, reason=error.detail)
    request = {"assignor": driver.assignor, "group": document.content}
    try:
        line = driver.process.request(json.dumps(request), seconds=driver.seconds)
    except TimeLimitError:
        return DocumentRunResult(livelock=f"no answer within {driver.seconds:g} seconds")
    except NoAnswerError as error:
        return DocumentRunResult(failed=str(error))
    answer = json.loads(line)
    if "failed" in answer:
        return DocumentRunResult(failed=answer["failed"], reason=answer["reason"])
    return DocumentRunResult(answer=answer)


@cached
def _document_text(group: Group) -> str:
    return json.dumps(group_document(group))


@cached
def _shared_text(group: Group) -> str:
    """Convert a group to JSON for a Java driver, without repeated lists of topics.

    Instead of equal topics, a member has the index of an earlier member with these topics. With the
    topics, a document of 5,000 members with 5,000 topics has 350 MB.
    """
    document: dict[str, Any] = group_document(group)
    first: dict[tuple[str, ...], int] = {}
    for index, member in enumerate(group.members):
        shared = first.setdefault(member.subscription, index)
        if shared != index:
            document["members"][index]["topics"] = shared
    return json.dumps(document)


def _parse_response(line: str) -> AssignorResult:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return AssignorResult(failed=f"the answer is not JSON: {_shorten(line)!r}")
    if isinstance(document, dict):
        reason = document.get("reason")
        if document.get("terminated") is False:
            return AssignorResult(
                livelock=str(reason or "the assignor reported that it does not terminate")
            )
        for key in ("failed", "error"):
            if isinstance(document.get(key), str):
                text = document[key]
                return AssignorResult(
                    failed=f"{text}: {reason}" if isinstance(reason, str) else text
                )
    try:
        assignment = parse_assignment(document, where="answer")
    except (InputError, OverflowError, RecursionError) as error:
        return AssignorResult(failed=_shorten(str(error)))
    seconds = document.get("seconds")  # a list if a member has this id
    known = seconds if isinstance(seconds, float) else None
    return AssignorResult(assignment=assignment, seconds=known)


def _shorten(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


MAX_ROUNDS = 50


class Ending(StrEnum):
    """Outcome of running an assignor on a group, such as ok or failed."""

    OK = "ok"
    NONTERMINATING = "nonterminating"
    FAILED = "failed"
    INVALID = "invalid"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class StableResult:
    """Result of an assignor after all rebalances that its protocol requires.

    Parameters
    ----------
    ending
        Outcome of the run. `Ending.ERROR` means a fault of kassay itself; only a study sets it.
    assignment
        The stable assignment; None unless ``ending`` is `Ending.OK`.
    rounds
        Number of rebalances, including the first one.
    seconds
        Run time of all rebalances, without the second run of a custom assignor. For Java classes
        and Python functions, it is the time of their calls.
    """

    ending: Ending
    assignment: Assignment | None
    rounds: int
    detail: str | None = None
    seconds: float = field(default=0.0, compare=False)


def run_until_stable(group: Group, assignor: str, *, repeats: bool = True) -> StableResult:
    """Run an assignor until no further rebalance follows from its protocol.

    A cooperative assignor withholds partitions that change owners: the owners revoke these
    first, and the next rebalance assigns them. The result is the assignment of the rebalance that
    withholds nothing. Each other assignor is stable after one rebalance. If a rebalance repeats
    the previous assignment, no further one follows. If it repeats an older assignment, or after
    50 rebalances, the ending is `Ending.NONTERMINATING`. The assignor runs for each part of a
    joined group (see `join_groups`). With ``repeats``, a custom assignor runs a second time, and
    fails if the results differ.
    """
    # Kafka's topic names do not contain this separator.
    if any(SEPARATOR in topic.name for topic in group.topics):
        parts = split_group(group)
        if len(parts) > 1:
            return _joined_result(
                {one.id or "": run_until_stable(one, assignor, repeats=repeats) for one in parts}
            )
    return _run_until_stable(group, assignor, repeats=repeats)


_FIRST: dict[tuple[int, str], float] = {}
"""Seconds of the first run, by process id of kassay and assignor."""


def first_seconds(assignor: str) -> float | None:
    """Return the duration in seconds of an assignor's first run in this process, or None."""
    return _FIRST.get((os.getpid(), assignor))


def _run_until_stable(group: Group, assignor: str, *, repeats: bool) -> StableResult:
    current = group
    first_round: dict[Assignment, int] = {}
    seconds = 0.0

    def ended(
        ending: Ending, detail: str | None = None, assignment: Assignment | None = None
    ) -> StableResult:
        _FIRST.setdefault((os.getpid(), assignor), seconds)
        return StableResult(
            ending=ending,
            assignment=assignment,
            rounds=round_number,
            detail=detail,
            seconds=seconds,
        )

    for round_number in range(1, MAX_ROUNDS + 1):
        start = time.perf_counter()
        result = run(current, assignor)
        elapsed = time.perf_counter() - start
        seconds += elapsed if result.seconds is None else result.seconds
        if result.failed is not None:
            return ended(Ending.FAILED, str(result.failed))
        assignment = result.assignment
        if assignment is None:
            return ended(Ending.NONTERMINATING, str(result.livelock))
        repeated = first_round.setdefault(assignment, round_number)
        if (
            not assignor_names.uses_cooperative_protocol(assignor)
            or not count_withheld_partitions(current, assignment)
            or repeated == round_number - 1
        ):
            ending, problem = Ending.INVALID, next(violations(group, assignment), None)
            is_run_again = repeats and problem is None
            if is_run_again and not is_repeatable(current, assignor, assignment):
                ending, problem = Ending.FAILED, DEPENDS_ON_THE_RUN
            if problem is not None:
                return ended(ending, problem)
            return ended(Ending.OK, assignment=assignment)
        if repeated < round_number:
            return ended(
                Ending.NONTERMINATING,
                f"the assignor withholds partitions in every round; "
                f"round {round_number} repeats the assignment of round {repeated}",
            )
        current = rejoin(current, assignment)
    return ended(
        Ending.NONTERMINATING, f"the assignor withholds partitions after {MAX_ROUNDS} rounds"
    )


DEPENDS_ON_THE_RUN = "a second run on the same group returns another assignment"


def is_repeatable(group: Group, assignor: str, assignment: Assignment) -> bool:
    """Run a custom assignor again, and return whether the assignments are equal.

    Assignors of libraries do not run again, because the results of some vary by design. A second
    run that reaches the time limit counts as equal.
    """
    if not assignor_names.is_custom_assignor(assignor):
        return True
    again = run(group, assignor)
    if again.assignment is None:
        return again.livelock is not None
    return {member: set(tps) for member, tps in again.assignment.items()} == {
        member: set(tps) for member, tps in assignment.items()
    }


def _joined_result(parts: Mapping[str, StableResult]) -> StableResult:
    """Join the results of the parts of a joined group, or return that of a failed part."""
    failed = next((part for part in parts.values() if part.assignment is None), None)
    if failed is not None:
        return failed
    assignments = {id: part.assignment for id, part in parts.items() if part.assignment}
    return StableResult(
        ending=Ending.OK,
        assignment=join_assignments(assignments),
        rounds=max(part.rounds for part in parts.values()),
        seconds=sum(part.seconds for part in parts.values()),
    )


def count_withheld_partitions(group: Group, assignment: Assignment) -> int:
    """Count the partitions of subscribed topics that the assignment gives to no member."""
    starts, subscribers = topic_starts(group), group.subscribers()
    has_subscriber = [bool(subscribers.get(topic.name)) for topic in group.topics]
    is_withheld = np.array(has_subscriber, dtype=bool).repeat(starts.counts)
    rows = starts.rows((0, partitions) for partitions in assignment.values())
    is_withheld[starts.flat(select(rows, starts.exist(rows)))] = False
    return int(np.count_nonzero(is_withheld))
