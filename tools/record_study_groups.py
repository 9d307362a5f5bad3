"""Record groups of simulated rebalances for the study family ``scenarios``.

Studies read recorded groups, so that they do not depend on the simulation. After a change of the
simulation or of a script, write the file again:
``python -m tools.record_study_groups``.
"""

import json
from pathlib import Path

from kassay.experiments.simulation.assignor_policies import POLICIES, Policy
from kassay.experiments.simulation.run_simulation import simulate
from kassay.experiments.simulation.script import BUILT_IN_SCRIPTS, load_script
from kassay.experiments.study.families.finite_families import GROUPS_PER_SCRIPT, RECORDED_GROUPS
from kassay.reference.assignors import ASSIGNORS, RELEASED_ASSIGNORS, RebalanceProtocol
from kassay.reference.documents.files import write_text
from kassay.reference.documents.json_codec import group_document


def groups_of_rebalances(script: str, assignor: str) -> list[dict[str, object]]:
    """Simulate a script, and return a fixed number of groups from its rebalances.

    The rebalances are evenly spaced.

    Assignors without a policy run under the eager protocol. A script with fewer rebalances
    than `GROUPS_PER_SCRIPT` repeats some of them.
    """
    policy = POLICIES.get(assignor) or Policy(
        assignor, RebalanceProtocol.EAGER, ASSIGNORS[assignor].assign
    )
    rebalances = simulate(load_script(script), policy).rebalances
    numbers = range(1, GROUPS_PER_SCRIPT + 1)
    last = [max(0, n * len(rebalances) // GROUPS_PER_SCRIPT - 1) for n in numbers]
    documents = [group_document(rebalances[index].group) for index in last]
    return [{key: value for key, value in one.items() if key != "id"} for one in documents]


def main() -> None:
    """Write the recorded groups of all scripts and assignors to the file `RECORDED_GROUPS`.

    The file has one line per script and assignor.
    """
    lines = (
        f'"{script}/{assignor}": '
        + json.dumps(groups_of_rebalances(script, assignor), separators=(",", ":"))
        for script in BUILT_IN_SCRIPTS
        for assignor in RELEASED_ASSIGNORS
    )
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    write_text(Path(str(RECORDED_GROUPS)), text)


if __name__ == "__main__":
    main()
