"""Input errors that name the file and line of a text."""

from kassay.reference.model.errors import InputError


def error_at(name: str, line: int, message: str, text: str = "") -> InputError:
    """Build an input error with file, line and the start of the offending text."""
    shown = text.strip()
    shown = shown if len(shown) <= 100 else shown[:97] + "..."
    return InputError(f"{name}:{line}: {message}" + (f": {shown!r}" if shown else ""))
