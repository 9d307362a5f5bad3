"""Any assignor on one group: Kafka's by name, or one of your own."""

import json
from dataclasses import dataclass

from kassay.experiments.implementations.subprocess_assignor import NoAnswerError, conversation
from kassay.experiments.implementations.user_assignors import is_user_assignor, parse_user_assignor
from kassay.reference.assignors import run_assignor
from kassay.reference.documents.json_codec import group_document, parse_assignment
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import LivelockError, UpstreamError
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

_SHOWN = 120  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of an assignor's run, Kafka's or not.

    Parameters
    ----------
    assignment
        What it assigned, valid or not; None if it did not come to an end or failed.
    livelock
        Why it never ends, in words.
    failed
        Why there is no answer, in words.
    """

    assignment: Assignment | None = None
    livelock: LivelockError | str | None = None
    failed: UpstreamError | str | None = None


def run(group: Group, assignor: str) -> RunResult:
    """Run an assignor on a group; whatever goes wrong with it is part of the verdict.

    Parameters
    ----------
    group
        The rebalance.
    assignor
        One of `kassay.reference.assignors.ASSIGNORS`, or the name of a custom one.

    Examples
    --------
    >>> from kassay.experiments.study.families.named_groups import NAMED_GROUPS
    >>> run(NAMED_GROUPS["A"].group, "sticky").assignment.loads()
    {'c0': 2, 'c1': 1, 'c2': 0}
    >>> run(NAMED_GROUPS["A"].group, "cmd:false").failed
    'ended without an answer (exit code 1)'
    """
    if not is_user_assignor(assignor):
        outcome = run_assignor(group, assignor)
        return RunResult(
            assignment=outcome.assignment, livelock=outcome.livelock, failed=outcome.failed
        )
    custom = parse_user_assignor(assignor)
    question = json.dumps(group_document(group), ensure_ascii=False)
    try:
        line = conversation(custom.command).ask(question, seconds=custom.seconds)
    except NoAnswerError as error:
        return RunResult(failed=str(error))
    return _understood(line)


def _understood(line: str) -> RunResult:
    """Read an answer: an assignment document, or a line as `kassay assign` writes it."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return RunResult(failed=f"answered no JSON: {_short(line)!r}")
    if isinstance(document, dict):
        reason = document.get("reason")
        if document.get("terminated") is False:
            return RunResult(livelock=str(reason or "it says that it never ends"))
        for key in ("failed", "error"):
            if isinstance(document.get(key), str):
                text = document[key]
                return RunResult(failed=f"{text}: {reason}" if isinstance(reason, str) else text)
    try:
        return RunResult(assignment=parse_assignment(document, where="answer"))
    except (InputError, OverflowError, RecursionError) as error:
        return RunResult(failed=_short(str(error)))


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
