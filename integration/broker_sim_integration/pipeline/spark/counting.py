"""Counting of rows while they are written into a table, so that no table is read only to count it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

EXCLUDED_RULES: Final = "spark.sql.adaptive.optimizer.excludedRules"
EMPTY_RELATIONS: Final = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
PLAN_CACHE: Final = "spark.connect.session.planCache.enabled"


class Counted:
    """A frame with aggregates; write `frame` once, inside `counting`, then call `counts`."""

    def __init__(self, frame: DataFrame, counts: Mapping[str, Column]) -> None:
        self._observation = Observation()
        columns = [column.alias(name) for name, column in counts.items()]
        self.frame = frame.observe(self._observation, *columns)

    def counts(self) -> dict[str, Any]:
        """Return the aggregates, by name, of the first time that the frame was computed."""
        return dict(self._observation.get)


@contextmanager
def counting(spark: SparkSession) -> Iterator[None]:
    """Keep the counting parts of a plan, even if Spark finds out that a part of the plan has no rows.

    A rule of Spark would replace that part by an empty relation while the query runs. The counts would be gone with
    it, and `Counted.counts` would wait for them for ever. A Spark Connect server must not take a counted frame from
    its cache of plans, which loses the counting.
    """
    before = {name: spark.conf.get(name, None) for name in (EXCLUDED_RULES, PLAN_CACHE)}
    excluded = ",".join(filter(None, (before[EXCLUDED_RULES], EMPTY_RELATIONS)))
    spark.conf.set(EXCLUDED_RULES, excluded)
    spark.conf.set(PLAN_CACHE, "false")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
