"""Tests of string functions with Java's semantics."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer.requests import check_heartbeat as check_consumer
from broker_sim.group.java_text import java_length, java_trim
from broker_sim.group.share.share_groups import check_heartbeat as check_share_member
from broker_sim.protocol import messages


def test_length_is_in_utf_16_units():
    assert [java_length(text) for text in ("", "ab", "\u2003", "\U0001f600")] == [0, 2, 1, 2]


def test_trim_removes_ascii_space_and_control_characters():
    assert java_trim(" \0\t\x1fa b\n ") == "a b"
    assert java_trim("\x7f\x85\xa0\u2003") == "\x7f\x85\xa0\u2003"


@pytest.mark.parametrize("field", ["member_id", "group_id", "rack_id"])
@pytest.mark.parametrize("is_consumer", [True, False])
def test_ids_are_empty_if_nothing_is_left_after_trim(field, is_consumer):
    def check(text):
        fields = {"group_id": "g", "member_id": "m", "member_epoch": 1, field: text}
        if is_consumer:
            check_consumer(messages.ConsumerGroupHeartbeatRequest(**fields), 1, ["range"])
        else:
            check_share_member(messages.ShareGroupHeartbeatRequest(**fields))

    for text in ("\u2003", "\xa0", "\x85", "\x7f"):
        check(text)
    for text in ("", " ", "\0", "\x1f\n"):
        with pytest.raises(ApiError, match="can't be empty") as failed:
            check(text)
        assert failed.value.error_code is ErrorCode.INVALID_REQUEST
