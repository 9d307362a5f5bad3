"""Arrow schemas of ``__consumer_offsets`` records and of the history tables."""

import pyarrow as pa

from kassay.experiments.history.table_rows import RebalanceRow
from kassay.experiments.spark.study_schemas import schema_of
from kassay.experiments.study.table_rows import ComparisonRow

_POSITION = [pa.field(name, pa.int64()) for name in ("partition", "offset")]
_TIMESTAMP = pa.field("timestamp", pa.int64())
# Raw records, the same for every source.
RAW = pa.schema(
    [pa.field("key", pa.binary()), pa.field("value", pa.binary()), *_POSITION, _TIMESTAMP]
)

# A record about a group, the newest commit of a partition, or an error.
RECORDS = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("kind", pa.int64()),
        *_POSITION,
        _TIMESTAMP,
        pa.field("topic", pa.string()),
        pa.field("topic_partition", pa.int64()),
        pa.field("payload", pa.string()),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("error", pa.string()),
    ]
)

_NUMBERS = pa.struct([pa.field("topic", pa.string()), pa.field("partitions", pa.list_(pa.int64()))])
_COUNT = pa.struct([pa.field("topic", pa.string()), pa.field("partitions", pa.int64())])
_MEMBER = pa.struct(
    [
        *(pa.field(n, pa.string()) for n in ("id", "instance_id", "client_id", "host", "rack")),
        pa.field("subscription", pa.list_(pa.string())),
        pa.field("assigned", pa.list_(_NUMBERS)),
        pa.field("claimed", pa.list_(_NUMBERS)),
        pa.field("claimed_generation", pa.int64()),
    ]
)
GENERATIONS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("incarnation", pa.int64(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("protocol", pa.string(), nullable=False),
        pa.field("assignor", pa.string()),
        _TIMESTAMP,
        *_POSITION,
        pa.field("members", pa.list_(_MEMBER), nullable=False),
        pa.field("partition_counts", pa.list_(_COUNT), nullable=False),
        pa.field("skipped_epochs", pa.int64(), nullable=False),
        pa.field("cooperative", pa.bool_(), nullable=False),
    ]
)

COMMITS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("topic_partition", pa.int64(), nullable=False),
        pa.field("committed", pa.int64()),
        pa.field("metadata", pa.string()),
        pa.field("commit_timestamp", pa.int64()),
        pa.field("records", pa.int64(), nullable=False),
    ]
)

_REBALANCE = schema_of(RebalanceRow)
REBALANCES = pa.schema(
    [*_REBALANCE, *(f for f in schema_of(ComparisonRow) if f.name not in _REBALANCE.names)]
)
# Columns that are known before a rebalance is solved.
REBALANCE_FACTS = pa.schema(
    [*_REBALANCE, *(REBALANCES.field(name) for name in ("case", "assignor", "rounds"))]
)

ERRORS = pa.schema([*_POSITION, pa.field("error", pa.string(), nullable=False)])
