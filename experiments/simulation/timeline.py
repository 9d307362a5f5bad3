"""A history in words, and as JSON."""

from collections.abc import Iterator, Mapping

from kassay.experiments.simulation.simulation_result import SimulationResult, Step
from kassay.reference.documents.json_codec import assignment_document, group_document


def clock_text(moment: int) -> str:
    """Write a moment of virtual time.

    Examples
    --------
    >>> clock_text(83_250)
    '01:23.250'
    """
    seconds, milliseconds = divmod(moment, 1000)
    return f"{seconds // 60:02d}:{seconds % 60:02d}.{milliseconds:03d}"


def timeline(history: SimulationResult) -> Iterator[str]:
    """Tell what happened, a line each, in the order of time.

    Examples
    --------
    >>> from kassay.experiments.simulation.simulation_result import TimelineNote
    >>> history = SimulationResult(script="demo", policy="range", until=60_000)
    >>> history.notes.append(TimelineNote(5_000, "c0", "crash"))
    >>> list(timeline(history))
    ['demo, range', '00:05.000  c0       crash']
    """
    yield f"{history.script}, {history.policy}"
    lines = [(note.at, index, note.who, note.what) for index, note in enumerate(history.notes)]
    lines += [(step.at, len(lines), "assignor", _told(step)) for step in history.steps]
    for at, _, who, what in sorted(lines):
        yield f"{clock_text(at)}  {who:8} {what}"


def _told(step: Step) -> str:
    loads = step.assignment.loads() if step.assignment is not None else {}
    shown = " ".join(f"{step.names[member]}:{load}" for member, load in loads.items())
    withheld = "" if step.complete else ", the rest is withheld for another round"
    answer = f"gives {shown}{withheld}" if step.assignment is not None else "has no answer"
    return f"generation {step.generation}: {answer}"


def simulation_document(history: SimulationResult) -> Mapping[str, object]:
    """Write a history as JSON; every rebalance is a group document with its assignment."""
    return {
        "script": history.script,
        "policy": history.policy,
        "until": history.until,
        "moves": history.moves,
        "stopped_ms": history.stopped_ms,
        "unread": history.unread,
        "rereads": history.rereads,
        "lag_peak": history.lag_peak,
        "rounds": [len(episode) for episode in history.episodes()],
        "notes": [{"at": note.at, "who": note.who, "what": note.what} for note in history.notes],
        "rebalances": [
            {
                "at": step.at,
                "settled_at": step.settled_at,
                "generation": step.generation,
                "complete": step.complete,
                "group": group_document(step.group),
                "assignment": None
                if step.assignment is None
                else assignment_document(step.assignment),
            }
            for step in history.steps
        ],
    }
