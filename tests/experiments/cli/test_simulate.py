def test_the_default_output_is_a_timeline(kassay):
    done = kassay("simulate", "crash", "--policy", "range")
    assert done.code == 0
    assert "01:02.000  c2       crash" in done.out
    assert "2 rebalances" in done.out


def test_jsonl_output_has_the_group_of_each_rebalance(kassay):
    policies = ("--policy", "range", "--policy", "uniform")
    lines = kassay("simulate", "crash", *policies, "--format", "jsonl").records
    assert [line["policy"] for line in lines] == ["range", "uniform"]
    last = lines[0]["rebalances"][-1]
    assert len(last["group"]["members"]) == 5
    assert sum(map(len, last["assignment"].values())) == 24
