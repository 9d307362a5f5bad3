"""Errors of kassay: input, usage and run errors, and failures of Kafka's assignors."""


class KassayError(Exception):
    """Base class of kassay's errors."""


class InputError(KassayError, ValueError):
    """Invalid input: a document, file or table. The message contains the position and the value."""


class UsageError(KassayError, ValueError):
    """Invalid arguments or options, or a combination that is not supported."""


class RunError(KassayError, RuntimeError):
    """Failure during a run: a missing runtime, a locked directory, a failed worker."""


class InternalError(RunError):
    """Error: a defect of kassay or of a library causes an inconsistent result."""


class UpstreamError(KassayError):
    """Error: Kafka's assignor throws an exception for a group.

    ``java_class`` is the simple name of the exception class, ``detail`` the reason. The class is
    None for an assignor of another library.
    """

    def __init__(self, detail: str, java_class: str | None = None) -> None:
        super().__init__(detail, java_class)
        self.java_class = java_class
        self.detail = detail

    def __str__(self) -> str:
        return self.detail if self.java_class is None else f"{self.java_class}: {self.detail}"
