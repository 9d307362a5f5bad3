"""Tables of moves over time."""

from benchmarks.published_streams import tables


def test_the_best_known_moves_do_not_increase_with_the_tolerance():
    names = ("hindsight", "fewest moves at each rebalance", "spread topics", "uniform", "sticky")
    row = {
        "seed": 0,
        "members": 2,
        "mixed": True,
        "events": ["start", "loss"],
        "courses": {name: [0, 10] for name in names},
        "bound": 10,
        "balance": {"0": (10, 10, 10), "1": (12, 9, 10), "5": (8, 8, 9), "10": (8, 7, 9)},
    }
    lines = tables([row])["tolerances"].splitlines()[2:]
    assert [line.split(" | ")[2] for line in lines] == ["10", "10", "8", "8"]
