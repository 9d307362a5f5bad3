"""Groups keep their rows, names, clusters and moments, whatever else the input contains."""

import json

import pytest

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.capture_files import import_groups
from kassay.experiments.sources.read_capture import read_capture
from tests.stored_cases import stored_cases

HEADER = "TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
ROWS = "bills 1 10 60 50 p-1 /10.0.0.1 p\nbills 2 10 40 30 p-2 /10.0.0.2 p\n"
SHOP = f"GROUP {HEADER}\nshop orders 0 10 60 50 c-1 /10.0.0.1 c\n"
MEMBERS = "CONSUMER-ID HOST CLIENT-ID #PARTITIONS"


@pytest.fixture
def read(tmp_path):
    def read(options=None, **texts):
        for name, text in texts.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        files = [tmp_path] if len(texts) > 1 else list(tmp_path.iterdir())
        return list(import_groups(files, options or ImportOptions()))

    return read


def owned(imported):
    assert imported.error is None
    return {one.id: [tuple(each) for each in one.owned] for one in imported.group.members}


TOPIC = "Topic: t\tPartitionCount: 4\tReplicationFactor: 1\tConfigs: \n"
METRIC = 'kafka_topic_partitions{topic="t"} 4\n'
SIZES = '{"version":1,"brokers":[{"broker":1,"logDirs":[{"partitions":[]}]}]}\n'
MOVES = '{"version":1,"partitions":[{"topic":"t","partition":3,"replicas":[1]}]}\n'


@pytest.mark.parametrize("other", [TOPIC, METRIC, SIZES, MOVES])
@pytest.mark.parametrize("is_first", [True, False])
def test_another_tool_in_a_file_hides_no_group(read, other, is_first):
    members = f"GROUP {MEMBERS}\ng i-1 /10.0.0.1 i 0\ng i-2 /10.0.0.2 i 0\ng c-1 /10.0.0.1 c 1\n"
    offsets = f"GROUP {HEADER}\ng t 3 1 1 0 c-1 /10.0.0.1 c\n"
    mixed = other + members if is_first else members + other
    (found,) = read(mixed_txt=mixed, offsets_txt=offsets)
    assert owned(found) == {"i-1": [], "i-2": [], "c-1": [("t", 3)]}
    assert found.group.topics[0].partitions == 4


def test_rows_without_a_header_take_the_layout_of_another_table(read):
    rows = "".join(f"pay  {row}\n" for row in ROWS.splitlines())
    pay, shop = read(describe_txt=f"{rows}\n{SHOP}")
    assert owned(pay) == {"p-1": [("bills", 1)], "p-2": [("bills", 2)]}
    assert owned(shop) == {"c-1": [("orders", 0)]}
    assert any(
        "a row without a header is read as a row of the offsets" in n for n in pay.group.notes
    )


def test_rows_without_any_header_are_an_error_with_the_first_line(read):
    (found,) = read(describe_txt=f"$ cat x\npay {ROWS}\nConsumer group 'b' is rebalancing.\n")
    assert ":2: the line is neither a row of a table nor a known message" in found.error


def test_a_blank_assignment_of_a_member_without_partitions_is_read(read):
    verbose = f"{MEMBERS} ASSIGNMENT\nc-1 /10.0.0.1 c 1 t(0)\n\nc-2 /10.0.0.2 c 0\n"
    assert owned(read(describe_txt=verbose)[0]) == {"c-1": [("t", 0)], "c-2": []}


def event(number, **more):
    inner = {"id": "g", "topic": "t", "partition": number, "client": {"member_id": "m"}, **more}
    return json.dumps({"kafka": {"consumergroup": inner}})


def test_an_event_of_another_kind_is_an_error_of_the_file(read):
    (found,) = read(events_jsonl=f'{event(0)}\n{{"kafka": {{"broker": 1}}}}\n{event(1)}\n')
    assert ":2: not the JSON output of a supported tool" in found.error


def test_unrelated_files_of_a_directory_are_named(read):
    found = read(other_json='{"a": 1}', notes_md="text", offsets_txt=SHOP, members="nothing here")
    notes = sorted(one.unused for one in found if one.unused)
    assert [one.id for one in found if one.group] == ["shop"]
    assert [
        name for note in notes for name in ("members", "notes.md", "other.json") if name in note
    ] == ["notes.md", "members", "other.json"]


def test_a_file_without_suffix_is_read(read):
    table = f"GROUP {MEMBERS}\nshop c-1 /10.0.0.1 c 1\nshop idle /10.0.0.1 c 0\n"
    (found,) = read(members=table, offsets_txt=SHOP)
    assert owned(found) == {"c-1": [("orders", 0)], "idle": []}


LAG = 'kafka_consumergroup_group_lag{{cluster_name="{}",group="g",topic="t",partition="{}"}} {}\n'


def test_groups_of_two_clusters_are_two_groups(read):
    text = LAG.format("eu", 0, 5) + LAG.format("us", 0, 7) + LAG.format("us", 1, 7)
    found = read(scrape_prom=text)
    assert [one.id for one in read(scrape_prom=LAG.format("eu", 0, 5))] == ["g"]
    assert [one.id for one in found] == ["eu/g", "us/g"]
    assert [one.group.topics[0].partitions for one in found] == [1, 2]


def rest(cluster, name, **more):
    content = {"kind": "KafkaConsumerLag", "cluster_id": cluster, "consumer_group_id": "g"}
    owned = {"consumer_id": name, "topic_name": "t", "partition_id": 0}
    return json.dumps({**content, **owned, **more})


def test_members_of_two_clusters_are_not_merged(read):
    found = read(rest_jsonl=f"{rest('eu', 'a')}\n{rest('us', 'b')}\n")
    assert {one.id: list(owned(one)) for one in found} == {"eu/g": ["a"], "us/g": ["b"]}


def test_a_table_belongs_to_the_message_above_it(read):
    text = f"Warning: Consumer group 'orders' is rebalancing.\n\n{HEADER}\n{ROWS}"
    (found,) = read(describe_txt=text)
    assert (found.id, found.group.status.is_rebalancing) == ("orders", True)
    assert owned(found) == {"p-1": [("bills", 1)], "p-2": [("bills", 2)]}


def test_a_table_belongs_to_the_command_above_it(read):
    command = "$ kafka-consumer-groups.sh --bootstrap-server b:9092 --describe --group {}\n"
    text = command.format("a") + f"{HEADER}\n{ROWS}" + command.format("b") + f"{HEADER}\n{ROWS}"
    assert [one.id for one in read(describe_txt=text)] == ["a", "b"]


def test_a_prompt_ends_the_group_of_a_command(read):
    text = f"$ x --group a\n{HEADER}\n{ROWS}$ x\n{MEMBERS}\nz /10.0.0.1 z 0\n"
    found = read(describe_txt=text)
    assert [one.id for one in found] == ["a", "describe"]
    note = "the id of the group is the name of the file, because no capture names it"
    assert note in found[1].group.notes


@pytest.mark.parametrize("end", ["; echo", "|tee x", ")", " 2>&1", "$", "-$ENV", "bob@b1:~$ "])
def test_the_group_of_a_command_ends_with_its_word(read, end):
    (found,) = read(describe_txt=f"$ kafka-consumer-groups.sh --group a{end}\n{HEADER}\n{ROWS}")
    assert found.id == ("describe" if "$" in end else "a")


def test_partitions_that_are_not_shown_are_noted(read):
    (found,) = read(describe_txt=f"GROUP {HEADER}\ng t 1 1 1 0 c /h c\ng t 4 1 1 0 c /h c\n")
    assert any("t-0, t-2, t-3" in note for note in found.group.notes)


def test_two_lists_of_members_are_two_snapshots(read):
    text = f"GROUP {MEMBERS}\ng a /h c 0\n\nGROUP {MEMBERS}\ng b /h c 0\n"
    (found,) = read(describe_txt=text)
    assert "a second members table of group 'g'" in found.error


def test_a_group_without_members_in_one_file_and_with_members_in_another_is_an_error(read):
    (found,) = read(a_txt="Consumer group 'shop' has no active members.\n", b_txt=SHOP)
    assert "one capture states that the group has no active members" in found.error


def test_an_owner_in_one_file_and_none_in_another_is_an_error(read):
    members = f"GROUP {MEMBERS} ASSIGNMENT\nshop c-1 /10.0.0.1 c 1 orders(0)\n"
    offsets = f"GROUP {HEADER}\nshop orders 0 10 60 50 - - -\n"
    (found,) = read(members_txt=members, offsets_txt=offsets)
    assert "orders-0 has owner 'c-1' in one capture and none in another" in found.error


@pytest.mark.parametrize("release", ["nested", "beside"])
def test_events_of_metricbeat_8_are_read(read, release):
    group = {"id": "g", "client": {"member_id": "m"}, "offset": 1, "consumer_lag": 2}
    kafka = {"consumergroup": group, "topic": {"name": "t"}, "partition": {"id": 2}}
    if release == "nested":
        kafka = {"consumergroup": {**group, "topic": {"name": "t"}, "partition": 2}}
    (found,) = read(events_jsonl=json.dumps({"kafka": kafka}) + "\n")
    assert owned(found) == {"m": [("t", 2)]}


@pytest.mark.parametrize("state", ["PREPARING_REBALANCE", "PreparingRebalance"])
def test_states_of_rest_in_capitals_are_read(read, state):
    content = {"kind": "KafkaConsumerGroup", "consumer_group_id": "g", "state": state}
    text = f"{json.dumps({**content, 'partition_assignor': 'range'})}\n{rest(None, 'a')}\n"
    (found,) = read(rest_jsonl=text)
    assert found.group.status.is_rebalancing
    assert found.group.status.assignor == "range"


def test_an_empty_group_of_rest_is_empty(read):
    content = {"kind": "KafkaConsumerGroup", "consumer_group_id": "g", "state": "EMPTY"}
    (found,) = read(rest_json=json.dumps(content))
    assert (found.error, found.group.members) == (None, ())


def test_a_summary_of_lags_is_accepted(read):
    summary = {"kind": "KafkaConsumerLagSummary", "consumer_group_id": "g", "max_lag": 5}
    found = read(summary_json=json.dumps(summary), offsets_txt=SHOP)
    assert [one.id for one in found] == ["shop"]


def test_a_host_without_a_slash_is_read(read):
    (found,) = read(describe_txt=SHOP.replace("/10.0.0.1", "10.0.0.1"))
    assert found.group.members[0].client.host == "10.0.0.1"


def test_a_lag_that_does_not_follow_from_the_offsets_is_noted(read):
    (found,) = read(describe_txt=SHOP.replace("60 50", "60 40"))
    note = "orders-0 has lag 40, but LOG-END-OFFSET - CURRENT-OFFSET is 50"
    assert any(note in each for each in found.group.notes)


def test_a_missing_lag_beside_offsets_is_an_error(read):
    (found,) = read(describe_txt=SHOP.replace("60 50", "60 -"))
    assert "orders-0 has no lag" in found.error


def test_the_account_names_the_rule_of_each_line():
    text = f"$ x --group g\n{SHOP}\nSome words of the author\nbroken 1\n"
    assert str(read_capture(text, name="x").account).splitlines() == [
        "x:1: ignored: prompt",
        "x:2: read: header of offsets table",
        "x:3: read: offsets table",
        "x:4: ignored: blank line",
        "x:5: ignored: prose",
        "x:6: error: the line is not a complete row of the offsets table above it",
        "x:7: ignored: blank line",
    ]


def test_the_error_of_a_tool_is_shown_to_its_end(read):
    text = f"Error: Executing consumer group command failed due to {'x' * 100}: unknown host\n"
    assert "unknown host" in read(describe_txt=text)[0].error


def test_a_text_without_a_table_is_an_error_with_the_next_step(read):
    (found,) = read(describe_txt="hello\n")
    assert ":1: the text contains no table" in found.error
    assert all(step in found.error for step in ("--describe", "kcat -L -J", "expand=status"))


@pytest.mark.parametrize(
    ("rule", "line"),
    [(rule, line) for rule, lines in stored_cases("lines_of_noise").items() for line in lines],
)
def test_a_line_without_data_below_a_table_is_known(rule, line):
    account = read_capture(f"{SHOP}\n{line}\n", name="x").account
    assert f"x:4: ignored: {rule}\n" in str(account)


def test_outputs_of_tools_for_other_groups_stand_beside_a_table(read):
    text = (
        "\nError: Streams group 'words' has no active members.\n"
        "GROUP  COORDINATOR (ID)  STATE   #MEMBERS\nwords  b1:9092 (1)       Empty   0\n\n"
    )
    (found,) = read(describe_txt=text + SHOP)
    assert owned(found) == {"c-1": [("orders", 0)]}


def test_data_that_would_be_lost_is_an_error(read):
    states, topic = "group,state,consumer_id\nshop,Stable,c-1\n", TOPIC.partition("\tRep")[0]
    for text in (states, METRIC.strip(), SHOP + topic):
        assert all(found.error for found in read(x_txt=text))
