"""Follow records that appear as Parquet files in a directory, until the process is killed."""

import sys

from pyspark.sql.pandas.types import from_arrow_schema

from kassay.experiments.spark.history_pipeline import RAW, ClusterMetadata, follow
from kassay.experiments.spark.session import spark_session
from tests.experiments.history.sample_records import PARTITION_COUNTS


def main(records: str, output: str, *options: str) -> None:
    settings = dict(option.removeprefix("--conf=").split("=", 1) for option in options)
    with spark_session(master="local[2]", settings=settings) as spark:
        follow(
            spark,
            spark.readStream.schema(from_arrow_schema(RAW)).parquet(records),
            output,
            known=ClusterMetadata(partition_counts=PARTITION_COUNTS),
            tasks=1,
            interval=0.5,
            quiet_period=2.0,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
