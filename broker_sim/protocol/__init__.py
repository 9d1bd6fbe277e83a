"""Kafka's wire protocol: messages, headers, record batches.

`messages` holds one class per Kafka message, `codec` reads and writes them, `headers` puts
them into frames. The decoders and encoders are compiled from `schemas.jsonl`, which has Kafka's
message definitions, when a version of a message is first used.
"""
