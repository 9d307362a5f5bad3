"""Input that cannot be read for sure."""

from kassay.reference.model.errors import InputError


class SourceError(InputError):
    """A text or document that is cut, damaged or contradicts itself; says file and line."""


class UnknownToolError(SourceError):
    """JSON that no tool known here writes."""


def located(name: str, line: int, message: str, text: str = "") -> SourceError:
    """Build an error with its place, and the offending text where there is one."""
    shown = text.strip()
    shown = shown if len(shown) <= 100 else shown[:97] + "..."
    return SourceError(f"{name}:{line}: {message}" + (f": {shown!r}" if shown else ""))
