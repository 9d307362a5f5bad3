"""Groups as they stand at the rebalances of simulated deployments, restarts and failures."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import ClassVar

from kassay.experiments.simulation.policies import POLICIES, GroupProtocol, Policy
from kassay.experiments.simulation.scenarios import SCENARIOS, load_script
from kassay.experiments.simulation.simulation import simulate
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group

_UNKNOWN_HISTORY = "sticky"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFamily:
    """Rebalances of the ready-made scripts, as the coordinator lets the assignor see them.

    Parameters
    ----------
    name
        Name of the family.
    rebalances
        How many of each script, spread evenly over it. Where a script has fewer, some
        come twice.
    """

    own_history: ClassVar[bool] = True

    name: str
    rebalances: int = 4

    @property
    def size(self) -> int:
        """How many groups there are."""
        return self.rebalances * len(SCENARIOS)

    def parameters(self) -> dict[str, object]:
        """Return the parameters, as a manifest records them."""
        return asdict(self) | {"scripts": list(SCENARIOS)}

    def expected_seconds(self, seed: int) -> float:  # noqa: ARG002
        """Guess how long all assignors and the optimum take."""
        return 0.5

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group of a rebalance, after a history under ``start``.

        Examples
        --------
        >>> group = SimulatedFamily(name="demo").build(3, start="range")
        >>> group.id, group.members[0].generation >= 0
        ('demo/3@range', True)
        """
        script = list(SCENARIOS)[seed // self.rebalances]
        steps = _groups(script, start or _UNKNOWN_HISTORY)
        step = (seed % self.rebalances + 1) * len(steps) // self.rebalances - 1
        name = f"{self.name}/{seed}" + (f"@{start}" if start else "")
        return replace(steps[max(0, step)], id=name)


@cache
def _groups(script: str, assignor: str) -> tuple[Group, ...]:
    known: Mapping[str, Policy] = POLICIES
    policy = known.get(assignor) or Policy(
        assignor, GroupProtocol.EAGER, partial(_assign, assignor)
    )
    return tuple(r.group for r in simulate(load_script(script), policy).rebalances)


def _assign(name: str, group: Group) -> Assignment:
    return assign(group, name)
