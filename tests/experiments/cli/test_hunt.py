import pytest

GROUP = '{"id": "mine", "topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]}\n'


COIN = """
import itertools
from kassay import Assignment

runs = itertools.count()

def assign(group):
    names = [m.id for m in group.members]
    chosen = names[max(0, next(runs) - {steady}) % len(names)]
    partitions = [(t.name, n) for t in group.topics for n in range(t.partitions)]
    return Assignment({{m: partitions if m == chosen else [] for m in names}})
"""
TWO_MEMBERS = GROUP.replace('[{"id"', '[{"id": "b", "topics": ["t"]}, {"id"')


@pytest.fixture
def coin(tmp_path):
    """Write an assignor that returns equal results only in its first runs."""

    def write(steady):
        module = tmp_path / "coin.py"
        module.write_text(COIN.format(steady=steady))
        return f"python:{module}:assign"

    return write


def test_an_assignor_that_is_not_deterministic_is_refused_at_once(kassay, tmp_path, coin):
    groups = tmp_path / "groups.jsonl"
    groups.write_text(TWO_MEMBERS)
    options = ("--assignor", coin(0), "--groups", groups, "-o", tmp_path / "out")
    done = kassay("hunt", *options)
    assert done.code == 2
    assert "is not deterministic" in done.message
    assert not (tmp_path / "out").exists()
