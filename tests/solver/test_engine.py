"""Table of the engine: names of its rows, and the solver without single rows."""

import random

from benchmarks import ablation
from benchmarks.typical_groups import Case
from kassay.reference.model.load_metrics import Measure
from kassay.solver.objective import Imbalance
from tests.solver.random_cases import random_group


def test_each_row_has_its_own_name():
    names = ablation.row_names()
    assert len(set(names)) == len(names) > 30


def test_the_groups_of_each_row_name_a_row():
    assert set(ablation.trials_of_rows()) <= set(ablation.row_names())


def test_a_removed_row_does_not_run():
    levels = (Imbalance(Measure.MAKESPAN),)
    trial = ablation.Trial(Case("small", random_group(random.Random(3)), levels), 1.0)
    known, ran = ablation.recorded_answer(trial)
    assert "enumeration" in ran
    with ablation.without_row("enumeration"):
        without, ran = ablation.recorded_answer(trial)
    assert "enumeration" not in ran
    assert without.values == known.values
    table = ablation.measure([(trial, None)])
    assert table[2:] == [line for line in table[2:] if line.count("|") == 8]
    assert any(line.startswith("| enumeration | 1 | 0 | 0 | 0 |") for line in table)
