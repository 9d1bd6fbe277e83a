"""Tables that a session has written."""

import pytest

pytestmark = pytest.mark.spark


def test_a_written_table_is_read_without_a_job_for_its_schema(spark, tmp_path):
    from broker_sim_integration.pipeline.spark import tables

    frame = spark.createDataFrame([(1, "sim")], "number int, side string")
    written = tables.overwrite(frame, str(tmp_path), "rows", ["side"])
    spark.sparkContext.setJobGroup("read", "")
    try:
        again = tables.read(spark, str(tmp_path), "rows")
        assert spark.sparkContext.statusTracker().getJobIdsForGroup("read") == []
        assert again.schema == written.schema
        assert again.collect() == [(1, "sim")]
        elsewhere = spark.newSession()
        assert tables.read(elsewhere, str(tmp_path), "rows").schema == written.schema
        assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("read")) == 2  # the rows, and the schema
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_a_table_that_was_removed_is_none(spark, tmp_path):
    from broker_sim_integration.pipeline.spark import tables

    frame = spark.createDataFrame([(1,)], "number int")
    tables.overwrite(frame, str(tmp_path), "rows")
    (tmp_path / "rows").rename(tmp_path / "gone")
    assert tables.read_or_none(spark, str(tmp_path), "rows") is None


def test_a_table_without_a_row_is_none_for_the_session_that_wrote_it_too(spark, tmp_path):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.spark import tables
    from broker_sim_integration.pipeline.spark.counting import counting

    frame = spark.createDataFrame([(1, "sim")], "number int, side string")
    with counting(spark):
        assert tables.append_new(frame.where("number = 2"), str(tmp_path), "rows", ["side"]) == 0
    with pytest.raises(PipelineError, match=r"no table rows in .*, or it is empty: run the job"):
        tables.read(spark, str(tmp_path), "rows")
