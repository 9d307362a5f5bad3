"""Read the group documents of a study into a Spark DataFrame."""

from collections.abc import Sequence
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.study.case import ImportedCases

_ID = "conv(substring(sha2(document, 256), 1, 15), 16, 10)"
"""SQL expression that computes `document_id` of the column ``document``."""


def read_documents(
    spark: SparkSession, documents: Sequence[str], uris: Sequence[str], *, assignors: Sequence[str]
) -> tuple[DataFrame, ImportedCases]:
    """Return the group documents as a DataFrame with case indices, and the study's cases.

    The columns are ``index`` and ``document``. Each line of the files at ``uris`` is a
    document. Documents are sorted by an id of their content, so that the index does not depend
    on the division into files and tasks. Equal documents are one case.
    """
    frames = [spark.createDataFrame([(document,) for document in documents], "document string")]
    if uris:
        lines = spark.read.text(list(uris)).select(F.trim("value").alias("document"))
        frames.append(lines.where("document <> ''"))
    found = reduce(DataFrame.unionAll, frames).withColumn("id", F.expr(_ID).cast("long"))
    distinct = found.dropDuplicates(["id"]).persist(StorageLevel.DISK_ONLY)
    order = F.row_number().over(Window.orderBy("id")) - 1
    indices = distinct.select("id", order.cast("long").alias("index"))  # sorts only the ids
    [row] = distinct.agg(F.count("*").alias("number"), F.bit_xor("id").alias("digest")).collect()
    cases = ImportedCases(row["number"], row["digest"] or 0, tuple(assignors))
    return distinct.join(indices, "id").select("index", "document"), cases
