import json

import pytest

from kassay.experiments.simulation.script import BUILT_IN_SCRIPTS
from kassay.experiments.study.families.all_families import FAMILIES
from kassay.experiments.study.families.finite_families import RECORDED_GROUPS
from kassay.reference.assignors import RELEASED_ASSIGNORS
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.errors import UsageError
from tools.record_study_groups import groups_of_rebalances


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky", "uniform"])
def test_recorded_groups_match_the_simulation(assignor):
    recorded = json.loads(RECORDED_GROUPS.read_text(encoding="utf-8"))
    for script in BUILT_IN_SCRIPTS:
        assert recorded[f"{script}/{assignor}"] == json.loads(
            json.dumps(groups_of_rebalances(script, assignor))
        )


def test_every_built_in_script_and_assignor_is_recorded():
    recorded = json.loads(RECORDED_GROUPS.read_text(encoding="utf-8"))
    assert list(recorded) == [
        f"{name}/{assignor}" for name in BUILT_IN_SCRIPTS for assignor in RELEASED_ASSIGNORS
    ]


def test_groups_of_simulations_depend_on_the_studied_assignor():
    family = FAMILIES["scenarios"]
    documents = {
        json.dumps(group_document(family.build(15, start=start))["members"])
        for start in ("sticky", "cooperative-sticky", "roundrobin")
    }
    assert len(documents) >= 2
    assert family.build(15).members
    with pytest.raises(UsageError, match="has no groups of"):
        family.build(15, start="cmd:./mine")
