from examples.write_shop_cluster import DEPLOYMENTS, SHOP_CLUSTER, TOPICS, write_captures


def test_the_example_is_the_output_of_its_script(tmp_path):
    write_captures(tmp_path)
    written = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert written == {file.name: file.read_text() for file in SHOP_CLUSTER.iterdir()}


def test_the_example_has_40_members_and_300_partitions_of_12_topics():
    assert sum(one.pods * one.threads for one in DEPLOYMENTS) == 40
    assert (len(TOPICS), sum(TOPICS.values())) == (12, 300)
