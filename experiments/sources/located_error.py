"""Input errors that state the file and line of the invalid text."""

from kassay.reference.model.errors import InputError


def error_at(name: str, line: int, message: str, text: str = "") -> InputError:
    """Build an `InputError` with file, line, message and the start of the invalid text."""
    shown = text.strip()
    shown = shown if len(shown) <= 100 else shown[:97] + "..."
    return InputError(f"{name}:{line}: {message}" + (f": {shown!r}" if shown else ""))
