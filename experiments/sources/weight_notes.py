"""Notes of a group about the quantity that its weights measure.

An import writes the note, a group document contains it. Groups with other weights have no note.
"""

from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

LAG = "weights are lags in messages"
SIZE = "weights are bytes on disk, of the largest replica"
TABLE = "weights are from the given file or table"
_RATE = "weights are messages appended within"
_ADVICE = {
    LAG: "Lag is a backlog, not a load: this plan spreads the backlog, and its numbers of members "
    "say how many members share the backlog, not how many the traffic needs",
    SIZE: "Size is the load of consumers that read topics from the beginning; use rates for "
    "consumers that read new records",
    _RATE: "The rate is the load of consumers that read new records",
}


def rate_note(seconds: float) -> str:
    """Return the note of weights that are rates, measured over a number of seconds."""
    return f"{_RATE} {seconds:.1f} s"


def unused_lag_note(messages: int) -> str:
    """Return the note of a capture with lag that is not used as weight."""
    return (
        f"the capture shows lag ({messages:,} messages), which is not used: lag is a backlog, not "
        "a load; --weights lag spreads the backlog"
    )


def weight_note(group: Group) -> str | None:
    """Return the note about the weights of a group, or None if it has no such note."""
    return next((note for note in group.notes if _is_weight_note(note)), None)


def with_weight_note(group: Group, note: str) -> tuple[str, ...]:
    """Return the notes of a group, with another note about its weights."""
    return (*(one for one in group.notes if not _is_weight_note(one)), note)


def weight_advice(note: str) -> str | None:
    """Return the use of the quantity that a note names, or None for a table of weights."""
    return next((text for start, text in _ADVICE.items() if note.startswith(start)), None)


def require_no_lag(group: Group, option: str) -> None:
    """Raise InputError, which names the option that allows lag, if the weights are lags."""
    if weight_note(group) == LAG:
        raise InputError(
            f"group {group.id!r}: the weights are lag, and lag is a backlog, not a load: it does "
            "not show how many members the traffic needs. Use rates (kassay import "
            f"--bootstrap-server HOST:PORT --weights rate) or --weights FILE; {option} shares the "
            "backlog among members"
        )


def _is_weight_note(note: str) -> bool:
    return note in (LAG, SIZE, TABLE) or note.startswith(_RATE)
