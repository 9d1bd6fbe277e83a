"""Keys that are read again while brokers run, in virtual time; the URL is that of a file."""

import json
import os

import pytest

from broker_sim.config import BrokerConfig
from broker_sim.runtime.process import Process
from broker_sim.runtime.virtual.run import VirtualScheduler
from broker_sim.security import TokenIssuer
from broker_sim.security.bearer_token import IllegalTokenError
from broker_sim.security.json_web_keys import JsonWebKeys
from broker_sim.security.refreshed_keys import (
    MISSING_KEY_ID_CACHE_IN_FLIGHT_MS,
    MISSING_KEY_ID_CACHE_MAX_ENTRIES,
    KeysOfUrl,
    read_keys,
)
from broker_sim.security.signed_tokens import SignedTokens

REFRESH_MS = 3_600_000
CONFIG = BrokerConfig()


class KeyFile:
    """A set of keys of which each has signed a token."""

    def __init__(self, path):
        self.path = path
        self.url = path.as_uri()
        self.issuers = {}
        self.versions = 0

    def publish(self, *key_ids):
        keys = [{**self.issuer(each).key_set.keys[0], "kid": each} for each in key_ids]
        self.path.write_text(json.dumps({"keys": keys}))
        self.versions += 1
        os.utime(self.path, ns=(self.versions, self.versions))

    def issuer(self, key_id):
        return self.issuers.setdefault(key_id, TokenIssuer(key_id))

    def is_good(self, keys, key_id):
        """Whether a token of that key is taken."""
        try:
            SignedTokens(keys).validate(self.issuer(key_id).token("a", CONFIG), 2_000_000_000_000)
        except IllegalTokenError:
            return False
        return True


@pytest.fixture
def file(tmp_path):
    made = KeyFile(tmp_path / "keys.json")
    made.publish("old")
    return made


@pytest.fixture
def scheduler():
    return VirtualScheduler()


@pytest.fixture
def keys(file, scheduler):
    made = KeysOfUrl(file.url, CONFIG)
    made.start(Process("broker-1", scheduler))
    return made


def test_file_is_read_again_when_it_has_changed(file):
    keys = read_keys(file.url, CONFIG)
    assert file.is_good(keys, "old")
    assert not file.is_good(keys, "new")
    file.publish("new")
    assert file.is_good(keys, "new")
    assert not file.is_good(keys, "old")
    file.path.unlink()
    assert file.is_good(keys, "new")


def test_file_that_changes_after_it_was_read_is_read_again_at_once(file, monkeypatch):
    def read(url):
        found = JsonWebKeys.parse(file.path.read_bytes())
        file.publish("new")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(JsonWebKeys, "read", read)
        keys = read_keys(file.url, CONFIG)
    assert file.is_good(keys, "new")


def test_url_is_read_again_in_its_interval(file, keys, scheduler):
    file.publish("new")
    scheduler.advance_to(REFRESH_MS - 1)
    assert file.is_good(keys, "old")
    scheduler.advance_to(REFRESH_MS)
    assert not file.is_good(keys, "old")
    assert file.is_good(keys, "new")


def test_login_with_a_new_key_fails_once(file, keys):
    file.publish("old", "new")
    assert not file.is_good(keys, "new")
    assert file.is_good(keys, "new")


def test_key_that_nobody_has_is_looked_for_once_a_minute(file, keys, scheduler):
    assert not file.is_good(keys, "new")
    file.publish("new")
    scheduler.advance_to(MISSING_KEY_ID_CACHE_IN_FLIGHT_MS - 1)
    assert not file.is_good(keys, "new")
    assert not file.is_good(keys, "new")
    scheduler.advance_to(MISSING_KEY_ID_CACHE_IN_FLIGHT_MS)
    assert not file.is_good(keys, "new")
    assert file.is_good(keys, "new")


def test_few_missing_keys_are_remembered(file, keys):
    for number in range(MISSING_KEY_ID_CACHE_MAX_ENTRIES + 1):
        assert not file.is_good(keys, f"missing {number}")
    file.publish("missing 0")
    assert not file.is_good(keys, f"missing {MISSING_KEY_ID_CACHE_MAX_ENTRIES}")
    assert not file.is_good(keys, "missing 0")
    assert file.is_good(keys, "missing 0")


def test_url_that_fails_is_tried_again_for_ten_seconds(file, keys, scheduler):
    file.path.unlink()
    assert not file.is_good(keys, "new")
    scheduler.advance_to(6_300)  # tries at 0, 100, 300, ... 6 300
    file.publish("new")
    scheduler.advance_to(9_999)
    assert file.is_good(keys, "old")
    scheduler.advance_to(10_000)
    assert file.is_good(keys, "new")


def test_restarted_broker_reads_the_url_again(file, keys, scheduler):
    file.publish("new")
    keys.start(Process("broker-1", scheduler))
    assert file.is_good(keys, "new")
