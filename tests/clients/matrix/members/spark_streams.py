"""Structured Streaming with Kafka's connector, for ../test_spark_streams.py.

Commands are lines of JSON on stdin: `{"start": NAME, "options": {...}, "checkpoint": PATH, "by":
"admin" or "consumer"}` starts a query, `{"stop": NAME}` stops it. Answers are lines of JSON on
stdout: what a query has read, batch by batch, and `stopped` with its exception or null.
"""

import json
import sys

from integration.pipeline.spark.session import spark_session

CONF = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
BY_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


def tell(**event):
    print(json.dumps(event), flush=True)


def start(spark, name, options, checkpoint, by):
    def told(batch, _number):
        records = [list(row) for row in batch.select("topic", "partition", "offset").collect()]
        if records:
            tell(read=name, records=records)

    spark.conf.set(BY_CONSUMER, by == "consumer")
    frame = spark.readStream.format("kafka").options(**options).load()
    writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint)
    return writer.foreachBatch(told).start()


def stop(query):
    error = query.exception()
    if error is None:
        # A batch whose end is not in the checkpoint yet would be read again.
        query.processAllAvailable()
    query.stop()
    tell(stopped=query.name, error=None if error is None else str(error))


with spark_session("group matrix", master="local[2]", conf=CONF, kafka=True) as session:
    tell(ready=True)
    queries = {}
    for line in sys.stdin:
        command = json.loads(line)
        if "start" in command:
            name = command.pop("start")
            queries[name] = start(session, name, **command)
        else:
            stop(queries.pop(command["stop"]))
