"""Format the result of a simulation as a text timeline or as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from kassay.experiments.simulation.results.simulation_result import (
    SimulatedRebalance,
    SimulationResult,
)
from kassay.reference.documents.json_codec import assignment_document, group_document


def timeline(result: SimulationResult) -> Iterator[str]:
    """Yield one line of text per timeline note and per rebalance, in order of time.

    Examples
    --------
    >>> result = SimulationResult(script="demo", policy="range", until=100_000)
    >>> result.add_note(83_250, "c0", "crash")
    >>> list(timeline(result))
    ['demo, range', '01:23.250  c0       crash']
    """
    yield f"{result.script}, {result.policy}"
    lines = [(note.at, index, note.source, note.text) for index, note in enumerate(result.notes)]
    lines += [(r.at, len(lines), "assignor", _describe(r)) for r in result.rebalances]
    for at, _, source, text in sorted(lines):
        seconds, milliseconds = divmod(at, 1000)
        yield f"{seconds // 60:02d}:{seconds % 60:02d}.{milliseconds:03d}  {source:8} {text}"


def _describe(rebalance: SimulatedRebalance) -> str:
    prefix = f"generation {rebalance.generation}: "
    if rebalance.assignment is None:
        return prefix + "no assignment"
    loads = " ".join(
        f"{rebalance.client_ids[member]}:{load}"
        for member, load in rebalance.assignment.loads().items()
    )
    withheld = "" if rebalance.complete else ", other partitions withheld for the next rebalance"
    return f"{prefix}assigns {loads}{withheld}"


def simulation_document(result: SimulationResult) -> Mapping[str, object]:
    """Return the JSON document of a simulation result, with a group document per rebalance."""
    totals = ["moves", "unowned_ms", "unowned_messages", "reread_messages", "max_lag"]
    return {
        **{name: getattr(result, name) for name in ["script", "policy", "until", *totals]},
        "rounds": [len(sequence) for sequence in result.sequences()],
        "notes": [asdict(note) for note in result.notes],
        "rebalances": [
            {
                "at": rebalance.at,
                "stable_at": rebalance.stable_at,
                "generation": rebalance.generation,
                "complete": rebalance.complete,
                "group": group_document(rebalance.group),
                "assignment": None
                if rebalance.assignment is None
                else assignment_document(rebalance.assignment),
            }
            for rebalance in result.rebalances
        ],
    }
