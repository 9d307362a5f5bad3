"""Groups that are captured from a real cluster, read from ``capture_scenarios.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.conformance.consumers import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioStep:
    """Consumers that join together, or one client that leaves, freezes or subscribes."""

    action: Literal["join", "leave", "freeze", "subscribe"]
    profiles: tuple[Profile, ...] = ()
    client: str = ""
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureScenario:
    """One captured group.

    Parameters
    ----------
    name
        Group id.
    about
        Purpose, in one sentence.
    final_state
        State of the group when it is captured.
    uncommitted
        Interval of the partitions without a committed offset; 0 for none.
    """

    name: str
    about: str
    assignor: str
    steps: tuple[ScenarioStep, ...]
    final_state: str = "Stable"
    uncommitted: int = 0

    @property
    def directory(self) -> str:
        """Directory of its captures: the group id without blanks and punctuation."""
        return re.sub(r"[^\w.-]+", "-", self.name)


def _step(entry: Mapping[str, Any], assignor: str) -> ScenarioStep:
    action = next(iter(entry))
    if action == "join":
        return ScenarioStep(action="join", profiles=tuple(_profiles(entry, assignor)))
    topics = tuple(entry.get("topics", "").split())
    return ScenarioStep(action=action, client=entry[action], topics=topics)


def _profiles(entry: Mapping[str, Any], assignor: str) -> Iterator[Profile]:
    for name, topics in entry["join"].items():
        numbers = range(entry.get("count", 0))
        for client in [f"{name}-{number:02}" for number in numbers] or [name]:
            yield Profile(
                client=client,
                topics=tuple(topics.split()),
                assignor=entry.get("assignor", assignor),
                instance=f"{client}.rack-7.example" if entry.get("static") else None,
            )


_DOCUMENT = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TOPICS: Mapping[str, int] = _DOCUMENT["topics"]
BUILT_IN_SCRIPTS = tuple(
    CaptureScenario(
        name=name,
        **fields | {"steps": tuple(_step(entry, fields["assignor"]) for entry in fields["steps"])},
    )
    for name, fields in _DOCUMENT["scenarios"].items()
)
