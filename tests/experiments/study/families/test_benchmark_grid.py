from kassay.experiments.study.families.benchmark_grid import GridFamily


def test_the_grid_has_every_point_once():
    family = GridFamily(name="test", members=(4, 6), partitions_per_member=(5,), topics=(2, 5))
    assert family.size == len(set(family.points)) == 16
    for seed, (members, each, topics, mixed, incremental) in enumerate(family.points):
        group = family.build(seed)
        assert (len(group.members), len(group.topics)) == (members, topics)
        assert group.partition_count == members * each
        assert (len({m.subscription for m in group.members}) > 1) == mixed
        newcomers = [m for m in group.members if m.generation == -1]
        assert len(newcomers) == (1 if incremental else members)
