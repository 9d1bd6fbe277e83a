"""What Kafka's own request classes answer when a whole request fails; the tests of errors compare with it.

`python -m tests.broker_sim.handlers.kafka_error_responses` records it again, by Java and the jars of Maven. A line of
the record has an API, a version, the fields of the response that have the error, and the response in base 64.
"""

import base64
import json
import subprocess
from pathlib import Path

from broker_sim.errors import ErrorCode
from broker_sim.protocol.api_keys import ApiKey, response_class
from broker_sim.protocol.codec import decode, encode
from tests.broker_sim.handlers.sample_requests import error_places, sample_request, served_versions

HERE = Path(__file__).parent
PROGRAM = HERE / "java" / "ErrorResponses.java"
RECORD = HERE / "recorded" / "error_responses_4_4_0.jsonl"
ERROR = ErrorCode.UNKNOWN_SERVER_ERROR
"""The error of the record: every API can tell it."""


def kafka_responses(jars, cases):
    """Return the encoded responses to sample requests; a case has an API, a version and an error."""
    lines = []
    for api, version, error_code in cases:
        request = base64.b64encode(b"".join(encode(sample_request(api, version), version))).decode()
        lines.append(f"{int(api)} {version} {int(error_code)} {request}\n")
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(PROGRAM)],
        input="".join(lines),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [base64.b64decode(line) for line in done.stdout.splitlines()]


def record_lines(jars):
    """Return the lines of the record."""
    versions = served_versions()
    responses = kafka_responses(jars, [(*each, ERROR) for each in versions])
    return [
        json.dumps([api.api_name, version, fields_of(api, version, response), base64.b64encode(response).decode()])
        for (api, version), response in zip(versions, responses, strict=True)
    ]


def fields_of(api, version, response):
    """Return the fields of an encoded response that have an error."""
    return sorted(field for field, _ in error_places(decode(response_class(api), version, response)))


def recorded():
    """Return, by API and version, the fields with the error and the encoded response."""
    apis = {api.api_name: api for api in ApiKey}
    rows = map(json.loads, RECORD.read_text().splitlines())
    return {(apis[name], version): (fields, base64.b64decode(text)) for name, version, fields, text in rows}


if __name__ == "__main__":
    from broker_sim_integration.reference.jars import kafka_jars

    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text("".join(f"{line}\n" for line in record_lines(kafka_jars())))
