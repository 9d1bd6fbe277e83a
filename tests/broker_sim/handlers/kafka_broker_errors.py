"""The errors that three running brokers of Kafka 4.4.0 told of the sample requests, and where.

The requests name groups, topics, members, transactions and sessions that do not exist, and two of the three brokers
are not the coordinators. `python -m tests.broker_sim.handlers.kafka_broker_errors` records them again, by Java and the
jars of Maven: each line has an API, a version, a field of the response and the error in it. Some depend on
what comes first, so a run adds to what earlier ones of the same version have seen.
"""

import json
import socket
import time
from contextlib import suppress
from pathlib import Path

from broker_sim.errors import ErrorCode
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from tests.broker_sim.handlers.sample_requests import error_places, sample_request, served_versions

RECORD = Path(__file__).parent / "recorded" / "broker_errors_4_4_0.jsonl"
NOT_SENT = (ApiKey.UNREGISTER_BROKER,)
"""It would take effect."""
ANSWER_S = 10
CREATES_TOPICS = 12
"""The version of Metadata whose sample request creates its topics, which are those of CreatePartitions."""
CREATED_S = 2


def ask(address, api, version):
    """Return the response of a broker, on a connection of its own. Raises OSError where it breaks the connection."""
    header = RequestHeader(api, version, 1, "sample")
    with socket.create_connection(address, ANSWER_S) as connection, connection.makefile("rb") as answers:
        connection.sendall(b"".join(encode_request(header, sample_request(api, version))))
        size = int.from_bytes(answers.read(4), "big")
        frame = answers.read(size)
        if not frame:
            raise ConnectionResetError
        return decode_response(api, version, frame)[1]


def record_lines(addresses):
    """Return the lines of the record."""
    rows = {(int(api), version, field, error.name) for api, version, field, error in recorded()}
    for address in addresses:
        for api, version in served_versions():
            if api in NOT_SENT:
                continue
            with suppress(OSError):
                if api is ApiKey.CREATE_PARTITIONS:
                    ask(address, ApiKey.METADATA, CREATES_TOPICS)
                    time.sleep(CREATED_S)
                places = error_places(ask(address, api, version))
                rows |= {(int(api), version, field, ErrorCode(code).name) for field, code in places}
    return [json.dumps([ApiKey(api).api_name, version, field, name]) for api, version, field, name in sorted(rows)]


def recorded():
    """Yield API, version, field and error of each line, if anything is recorded of the version."""
    if not RECORD.exists():
        return
    apis = {api.api_name: api for api in ApiKey}
    for name, version, field, error in map(json.loads, RECORD.read_text().splitlines()):
        yield apis[name], version, field, ErrorCode[error]


if __name__ == "__main__":
    from broker_sim_integration.reference.clusters.jvm import JvmCluster

    with JvmCluster() as cluster:
        brokers = [cluster.address(broker).rsplit(":", 1) for broker in cluster.broker_ids]
        RECORD.write_text("".join(f"{line}\n" for line in record_lines([(h, int(p)) for h, p in brokers])))
