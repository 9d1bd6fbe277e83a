"""Kafka's wire protocol: messages, headers, record batches.

`messages` holds one class per Kafka message, `codec` reads and writes them, `headers` puts
them into frames. The readers and writers are compiled from `schemas.jsonl`, what Kafka's own
message definitions say, when a version of a message is first used.
"""
