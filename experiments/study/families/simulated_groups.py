"""Family of groups recorded in simulations of deployments, restarts and failures.

The groups are recorded in ``simulated_groups.json``, which
``python -m tools.record_study_groups`` writes.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from kassay.experiments.study.families.family import Family
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group

RECORDED_GROUPS = Path(__file__).with_suffix(".json")
GROUPS_PER_SCRIPT = 4
_DEFAULT_ASSIGNOR = "sticky"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFamily(Family):
    """Family of groups that were recorded in simulations as input of the assignor."""

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return GROUPS_PER_SCRIPT * len(_scripts())

    @property
    def own_history(self) -> bool:
        """Return True: the owned partitions are earlier results of the studied assignor."""
        return True

    def parameters(self) -> dict[str, object]:
        """Return the parameters of the family, for the manifest of a study."""
        return {"name": self.name, "rebalances": GROUPS_PER_SCRIPT, "scripts": [*_scripts()]}

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Return a recorded group of a simulation that used the assignor ``start``.

        Examples
        --------
        >>> group = SimulatedFamily(name="demo").build(3, start="range")
        >>> group.id, group.members[0].generation >= 0
        ('demo/3@range', True)
        """
        script = _scripts()[seed // GROUPS_PER_SCRIPT]
        key = f"{script}/{start or _DEFAULT_ASSIGNOR}"
        if key not in _documents():
            raise UsageError(f"family {self.name!r} has no recorded groups of assignor {start!r}")
        group = parse_group(_documents()[key][seed % GROUPS_PER_SCRIPT])
        return replace(group, id=f"{self.name}/{seed}" + (f"@{start}" if start else ""))


@cache
def _documents() -> dict[str, list[dict[str, object]]]:
    documents: dict[str, list[dict[str, object]]] = json.loads(
        RECORDED_GROUPS.read_text(encoding="utf-8")
    )
    return documents


@cache
def _scripts() -> tuple[str, ...]:
    return tuple(dict.fromkeys(key.rpartition("/")[0] for key in _documents()))
