"""Arrow schemas of ``__consumer_offsets`` records and of the history tables."""

from functools import partial

import pyarrow as pa

from kassay.experiments.comparison.comparison_row import ComparisonRow
from kassay.experiments.history.hindsight import HindsightRow
from kassay.experiments.history.history_rows import RecordedRebalanceRow
from kassay.experiments.spark.study_schemas import schema_of

_INT, _TEXT, _TEXTS = pa.int64(), pa.string(), pa.list_(pa.string())
_required = partial(pa.field, nullable=False)
_POSITION = [("partition", _INT), ("offset", _INT)]
# Raw records, the same for every source.
RAW = pa.schema([("key", pa.binary()), ("value", pa.binary()), *_POSITION, ("timestamp", _INT)])

# A record about a group, the newest commit of a partition, or an error.
RECORDS = pa.schema(
    [
        *(("group", _TEXT), ("kind", _INT), *_POSITION, ("timestamp", _INT)),
        *(("topic", _TEXT), ("topic_partition", _INT), ("payload", _TEXT)),
        *(_required("records", _INT), ("error", _TEXT)),
    ]
)

_NUMBERS = pa.list_(pa.struct([("topic", _TEXT), ("partitions", pa.list_(_INT))]))
_COUNTS = pa.list_(pa.struct([("topic", _TEXT), ("partitions", _INT)]))
_MEMBER = pa.struct(
    [
        *((name, _TEXT) for name in ("id", "instance_id", "client_id", "host", "rack")),
        *(("subscription", _TEXTS), ("assigned", _NUMBERS), ("claimed", _NUMBERS)),
        ("claimed_generation", _INT),
    ]
)
GENERATIONS = pa.schema(
    [
        *(_required("group", _TEXT), _required("incarnation", _INT), _required("number", _INT)),
        *(_required("protocol", _TEXT), ("assignor", _TEXT), ("timestamp", _INT), *_POSITION),
        *(_required("members", pa.list_(_MEMBER)), _required("partition_counts", _COUNTS)),
        *(_required("skipped_epochs", _INT), _required("cooperative", pa.bool_())),
    ]
)

COMMITS = pa.schema(
    [
        *(_required("group", _TEXT), _required("topic", _TEXT), _required("topic_partition", _INT)),
        *(("committed", _INT), ("metadata", _TEXT), ("commit_timestamp", _INT)),
        _required("records", _INT),
    ]
)

_REBALANCE = schema_of(RecordedRebalanceRow)
REBALANCES = pa.schema(
    [*_REBALANCE, *(f for f in schema_of(ComparisonRow) if f.name not in _REBALANCE.names)]
)
# Columns that are known before a rebalance is solved.
REBALANCE_FACTS = pa.schema(
    [*_REBALANCE, *(REBALANCES.field(name) for name in ("case", "assignor", "rounds"))]
)

ERRORS = pa.schema([*_POSITION, _required("error", _TEXT)])

# Moves of a group over all of its rebalances.
HINDSIGHT = schema_of(HindsightRow)
