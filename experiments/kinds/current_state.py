"""Compare the current state of a share group, Streams application or Connect cluster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kassay.experiments.kinds.comparison import compare_answer
from kassay.experiments.kinds.connect_forecast import last_step, state_after_events
from kassay.experiments.kinds.measures import KindComparison, KindMeasure
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.solver.limits import SearchLimits

_PLACES = {
    Kind.SHARE: "members",
    Kind.STREAMS_GROUP: "members",
    Kind.STREAMS: "processes",
    Kind.CONNECT: "workers",
}
_LEVERS = {
    Kind.SHARE: "the broker's assignor decides, and Kafka has no other one for share groups",
    Kind.STREAMS_GROUP: "the broker's assignor decides; num.standby.replicas is a group setting",
    Kind.STREAMS: "kassay forecast compares task assignors and settings",
    Kind.CONNECT: "kassay forecast compares settings of the delay",
}
_OMITTED = (
    *("movement", "moves", "stopped_ms", "replaced_copies", "unused_directories", "without_copy"),
    *("copy_spread", "standby_spread"),
)
"""Last words of measures that the current state does not have: they need an event, or have no
minimum."""


@dataclass(frozen=True, slots=True)
class KindState:
    """Current state of a group of another kind than consumers, with the minimum per measure.

    ``loads`` has the numbers of partitions, tasks or connectors per member, process or worker.
    """

    id: str | None
    kind: Kind
    loads: Sequence[tuple[str, Mapping[str, int]]]
    comparison: KindComparison
    condition: str | None

    @property
    def above(self) -> list[KindMeasure]:
        """Return the measures that are above their best known value."""
        return [one for one in self.measures if one.minimum is not None and one.value > one.minimum]

    @property
    def unproven(self) -> list[KindMeasure]:
        """Return the measures without a better known value and without a proof."""
        return [
            one
            for one in self.measures
            if one not in self.above and one.bound is not None and one.value > one.bound
        ]

    @property
    def verdict(self) -> str:
        """Return the result in one sentence, with the condition of assumed data."""
        return self._result if self.condition is None else f"If {self.condition}: {self._result}"

    @property
    def _result(self) -> str:
        invalid = self.comparison.invalid
        size = f"{len(self.loads)} {_PLACES[self.kind]}"
        if invalid:
            more = f" and {len(invalid) - 1} more" if len(invalid) > 1 else ""
            return f"The current state of {size} is not valid: {invalid[0]}{more}."
        if not self.above and self.unproven:
            names = ", ".join(one.name.replace("_", " ") for one in self.unproven)
            return f"{size}: no better state is known; not proven: {names}."
        if not self.above:
            return f"Nothing to do: {size}, and each measure has its minimum."
        texts = [
            f"{one.name.replace('_', ' ')} {one.value} (minimum {_minimum(one)})"
            for one in self.above
        ]
        return f"{size} are not at the minimum: {', '.join(texts)}; {_LEVERS[self.kind]}."

    def record(self) -> dict[str, object]:
        """Return the state as a JSON object."""
        return {
            "id": self.id,
            "kind": str(self.kind),
            _PLACES[self.kind]: len(self.loads),
            "verdict": self.verdict,
            "condition": self.condition,
            "measures": {
                one.name: {"value": one.value, "minimum": one.minimum, "bound": one.bound}
                for one in self.measures
            },
        }

    @property
    def measures(self) -> list[KindMeasure]:
        """Return the measures that need no event and have a minimum."""
        return [one for one in self.comparison.measures if not one.name.endswith(_OMITTED)]


def current_state(document: KindDocument, *, limits: SearchLimits) -> KindState:
    """Compare the assignment that the members, processes or workers of a document have."""
    document, answer = _current_answer(document)
    return KindState(
        document.id,
        document.kind,
        tuple(_loads(document.kind, answer)),
        compare_answer(document, answer, limits=limits)[-1],
        document.condition,
    )


def _current_answer(document: KindDocument) -> tuple[KindDocument, Mapping[str, Any]]:
    """Return the current assignment in the form of an answer, and the document of its state."""
    content: Any = document.content
    match document.kind:
        case Kind.SHARE:
            return document, {"members": {m["id"]: m.get("owned", []) for m in content["members"]}}
        case Kind.STREAMS_GROUP:
            return document, {"members": {m["id"]: _tasks(m, {}) for m in content["members"]}}
        case Kind.STREAMS:
            return document, {"processes": {p["id"]: _tasks(p, []) for p in content["processes"]}}
    last = last_step(document)
    running = last.get("running")
    if running is None:
        running = state_after_events(document)
    state: Any = {
        worker: {"connectors": [], "tasks": [], **running.get(worker, {})}
        for worker in last["workers"]
    }
    step = {**last, "running": state}
    return KindDocument(document.kind, document.id, {**content, "steps": [step]}), {
        "steps": [{"state": state}]
    }


def _tasks(place: Mapping[str, Any], default: object) -> dict[str, object]:
    return {role: place.get(role, default) for role in ("active", "standby")}


def _loads(kind: Kind, answer: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the name of each member, process or worker, and its numbers by what it has."""
    places = answer["steps"][-1]["state"] if kind is Kind.CONNECT else answer[_PLACES[kind]]
    for name, own in places.items():
        if kind is Kind.SHARE:
            yield name, {"partitions": len(own)}
        elif kind is Kind.STREAMS_GROUP:
            yield name, {role: sum(map(len, own[role].values())) for role in own}
        else:
            yield name, {role: len(entries) for role, entries in own.items()}


def _minimum(measure: KindMeasure) -> str:
    if measure.minimum == measure.bound:
        return str(measure.minimum)
    return f"at least {measure.bound}"
