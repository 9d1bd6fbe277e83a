"""Structured Streaming with Kafka's connector, for ../test_spark_streams.py.

Commands are lines of JSON on stdin: `{"start": NAME, "options": {...}, "checkpoint": PATH, "by":
"admin" or "consumer", "sink": TOPIC or null}` starts a query, that copies what it reads to the sink;
`{"stop": NAME}` stops it, `{"batch": NAME, "options": {...}}` reads all there is. Answers are lines of
JSON on stdout: what a query has read, batch by batch, and `stopped` with its exception or null.
"""

import json
import sys

from broker_sim_integration.pipeline.spark.session import spark_session

CONF = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
BY_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


def tell(**event):
    print(json.dumps(event), flush=True)


def tell_records(name, frame):
    records = [list(row) for row in frame.select("topic", "partition", "offset").collect()]
    if records:
        tell(read=name, records=records)


def start(spark, name, options, checkpoint, by, sink=None):
    servers = options["kafka.bootstrap.servers"]

    def told(batch, _number):
        if sink is not None:
            sending = batch.select("value", "partition").write.format("kafka").option("topic", sink)
            sending.option("kafka.bootstrap.servers", servers).save()
        tell_records(name, batch)

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
        elif "batch" in command:
            frame = session.read.format("kafka").options(**command["options"]).load()
            tell_records(command["batch"], frame)
        else:
            stop(queries.pop(command["stop"]))
