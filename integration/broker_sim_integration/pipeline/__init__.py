"""The data pipeline on Spark: from traces of delayed operations to answers, at any size.

Every job is a pure `transform(frame) -> frame` with a thin `run` around it that reads and
writes tables; see docs/operate/pipeline.md. Nothing here is imported by the rest of the project, and
pyspark (extra `spark`) is imported only once a job runs.
"""
