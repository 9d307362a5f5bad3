"""Errors of kassay: input errors, usage errors and run errors."""


class KassayError(Exception):
    """Base class of kassay's errors."""


class InputError(KassayError, ValueError):
    """Invalid input: a document, file or table. The message contains the position and the value."""


class UsageError(KassayError, ValueError):
    """Invalid arguments or options, or a combination that is not supported."""


class RunError(KassayError, RuntimeError):
    """Failure during a run: a missing runtime, a locked directory, a failed worker."""


class InternalError(RunError):
    """An inconsistency that only a defect of kassay or of a library can cause."""
