"""The data pipeline on Spark: from traces of delayed operations to statistics, at any size.

Each job is a pure `transform(frame) -> frame` with a thin `run` around it that reads and writes tables; see
docs/operate/pipeline.md. The rest of the project does not import it, and pyspark (extra `spark`) is imported
only when a job runs.
"""
