import uuid

from broker_sim.protocol.uuids import version_4


def test_version_4_sets_the_bits_that_uuid_sets():
    for raw in (bytes(16), b"\xff" * 16, bytes(range(16))):
        assert version_4(raw) == uuid.UUID(bytes=raw, version=4).bytes
