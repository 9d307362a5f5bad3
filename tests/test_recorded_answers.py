"""The solver answers a sample of fixed groups as well as in the committed record.

``python -m tests.test_recorded_answers`` writes the record again. Compare it with the former one by
``python -m benchmarks.answers compare`` before a commit.
"""

from pathlib import Path

import pytest

from benchmarks.answers import compare, record
from tests.stored_cases import stored_cases

RECORDED = Path(__file__).parent / "data" / "answers.jsonl"
SAMPLES = stored_cases("groups_per_set_of_answers")
"""Number of groups per set."""


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLES)
def test_no_answer_is_worse_than_in_the_record(name, tmp_path, capsys):
    answers = tmp_path / "answers.jsonl"
    record(answers, [name], SAMPLES[name])
    assert compare(RECORDED, answers) == 0, capsys.readouterr().out
    assert f"{name} |" in capsys.readouterr().out


if __name__ == "__main__":
    RECORDED.unlink(missing_ok=True)
    for name, count in SAMPLES.items():
        record(RECORDED, [name], count)
