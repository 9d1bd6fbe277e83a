"""Who may write what is tested through the log, in test_producer_state and test_verification_state.

Here are the rules that no log can reach by itself.
"""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.producer_checks import check_end_txn_marker
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import EndTxnMarker, build_end_txn_marker

KEY = TopicPartition("topic", 0)


def check(epoch, transaction_version, entry=None):
    batch = build_end_txn_marker(producer_id=7, producer_epoch=epoch, is_commit=True, timestamp=0)
    marker = EndTxnMarker(True, 0)
    check_end_txn_marker(KEY, parse_header(batch), marker, 3, transaction_version, entry)


def test_marker_of_an_unknown_version_is_refused():
    with pytest.raises(ApiError) as caught:
        check(0, -1)
    assert caught.value.error_code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
def test_marker_of_an_unknown_producer_needs_an_epoch(transaction_version):
    check(0, transaction_version)
    with pytest.raises(ApiError) as caught:
        check(-2, transaction_version)
    assert caught.value.error_code is ErrorCode.INVALID_PRODUCER_EPOCH
