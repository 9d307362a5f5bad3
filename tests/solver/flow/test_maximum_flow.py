"""Maximum flow of small networks, compared with OR-Tools."""

import random

import numpy as np

from kassay.solver.flow import optimal_loads_by_cuts as module


def random_network(rng):
    nodes = rng.randint(2, 8)
    arcs = [
        (rng.randrange(nodes - 1), rng.randint(1, nodes - 1), rng.randint(0, 9))
        for _ in range(rng.randint(0, 20))
    ]
    arcs = [(0, nodes - 1, 0), *(arc for arc in arcs if arc[0] != arc[1])]
    columns = np.array(arcs, dtype=np.int64)
    return (*columns.T, nodes)


def test_small_networks_have_the_flow_and_the_cut_of_ortools(monkeypatch):
    rng = random.Random(11)
    for _ in range(300):
        tail, head, capacity, nodes = random_network(rng)
        ends = {"source": 0, "sink": nodes - 1}
        small = module.maximum_flow(tail, head, capacity, **ends)
        with monkeypatch.context() as patch:
            patch.setattr(module, "MAX_SMALL_ARCS", -1)
            large = module.maximum_flow(tail, head, capacity, **ends)
        assert small.total == large.total
        assert small.source_side.tolist() == large.source_side.tolist()
        assert ((small.flows >= 0) & (small.flows <= capacity)).all()
        balance = np.zeros(nodes, dtype=np.int64)
        np.subtract.at(balance, tail, small.flows)
        np.add.at(balance, head, small.flows)
        assert balance.tolist() == [-small.total, *[0] * (nodes - 2), small.total]
