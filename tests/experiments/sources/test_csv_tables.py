"""Tables in CSV with the columns of kafka-consumer-groups are read."""

import pytest

from kassay.experiments.sources.describe_output import parse_text
from kassay.experiments.sources.describe_rows import MemberRow, StateRow
from kassay.reference.model.errors import InputError


def rows(text):
    (table,) = parse_text(text, name="x.csv").tables
    return table.rows


def test_columns_may_have_any_order_and_case():
    (row,) = rows("partition;TOPIC;Lag;Consumer-Id\n3;orders;;c1\n")
    assert (row.topic, row.partition, row.lag, row.consumer_id) == ("orders", 3, None, "c1")


def test_quoted_assignments_keep_their_commas():
    header = "GROUP,CONSUMER-ID,HOST,CLIENT-ID,#PARTITIONS,ASSIGNMENT\n"
    (row,) = rows(header + 'g,c1,/h,app,3,"t(0,1), u(2)"\n')
    assert isinstance(row, MemberRow)
    assert row.assignment == (("t", (0, 1)), ("u", (2,)))


def test_state_tables_need_no_coordinator():
    (row,) = rows("group,state,assignment-strategy,#members\ng,Stable,range,2\n")
    assert isinstance(row, StateRow)
    assert (row.state, row.strategy, row.members) == ("Stable", "range", 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topic,partition,lag\nt,0\n", "x.csv:2: a row of 2 cells under a header of 3"),
        ("topic,partition,lag\nt,0,7\nt,1,8", "x.csv:3: the last line may be cut"),
        ("topic,partition,day\nt,0,7\n", "x.csv:1: unknown column 'DAY'"),
        ("topic,partition,topic\nt,0,t\n", "x.csv:1: column 'TOPIC' is repeated"),
        (
            "topic,lag\nt,0\n",
            "x.csv:1: columns are missing from the table, expected TOPIC",
        ),
        ("topic,partition\nt,zero\n", "x.csv:2: not a complete row of the offsets table"),
        ("topic,partition\nt,0\nt,0\n", "x.csv:3: t-0 has two rows"),
    ],
)
def test_damaged_tables_are_errors_with_a_place(text, message):
    with pytest.raises(InputError) as failed:
        parse_text(text, name="x.csv")
    assert str(failed.value).startswith(message)


def test_the_comma_separated_table_of_release_0_9_is_no_csv():
    header = "GROUP, TOPIC, PARTITION, CURRENT OFFSET, LOG END OFFSET, LAG, OWNER\n"
    (row,) = rows(header + "g, t, 0, 4, 9, 5, app_/10.0.0.1\n")
    assert row.owner == "app_/10.0.0.1"
