"""Record groups of simulated rebalances for the study family ``scenarios``.

Studies read recorded groups, so that they do not depend on the simulation. After a change of the
simulation or of a scenario, write the file again:
``python -m kassay.experiments.simulation.recorded_groups``.
"""

import json

from kassay.experiments.simulation.policies import POLICIES, GroupProtocol, kafka_policy
from kassay.experiments.simulation.scenarios import SCENARIOS, load_script
from kassay.experiments.simulation.simulation import simulate
from kassay.experiments.study.families.simulated_groups import GROUPS_PER_SCENARIO, RECORDED_GROUPS
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.documents.json_codec import group_document


def recorded_groups(scenario: str, assignor: str) -> list[dict[str, object]]:
    """Simulate a scenario; return the groups of evenly spaced rebalances.

    A scenario with fewer rebalances than `GROUPS_PER_SCENARIO` repeats some of them.
    """
    policy = POLICIES.get(assignor) or kafka_policy(assignor, GroupProtocol.EAGER)
    rebalances = simulate(load_script(scenario), policy).rebalances
    numbers = range(1, GROUPS_PER_SCENARIO + 1)
    last = [max(0, n * len(rebalances) // GROUPS_PER_SCENARIO - 1) for n in numbers]
    documents = [group_document(rebalances[index].group) for index in last]
    return [{key: value for key, value in one.items() if key != "id"} for one in documents]


def main() -> None:
    """Write the recorded groups to a file, one line per scenario and assignor."""
    lines = (
        f'"{scenario}/{assignor}": '
        + json.dumps(recorded_groups(scenario, assignor), separators=(",", ":"))
        for scenario in SCENARIOS
        for assignor in ASSIGNORS
    )
    RECORDED_GROUPS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
