"""Keys of signed tokens that are refreshed while the brokers run.

Mirrors `CachedFile` with its policy of the last modification, `RefreshingHttpsJwks` and `Retry`.

    file    read again at the next login after a change
    URL     read again every `sasl.oauthbearer.jwks.endpoint.refresh.ms`, and at once for an unknown key id, at
            most once a minute for the same id; the login with that key fails nevertheless

Deliberate difference: while keys cannot be read, the earlier keys stay valid, those of a file too.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from broker_sim.errors import ConfigError
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.process import PeriodicTask
from broker_sim.security.json_web_keys import JsonWebKeys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.runtime.process import Process

MISSING_KEY_ID_CACHE_MAX_ENTRIES: Final = 16
"""Maximum number of unknown key ids that are remembered."""
MISSING_KEY_ID_CACHE_IN_FLIGHT_MS: Final = 60_000
"""Minimum time between two reads for the same unknown key id, in ms."""
MISSING_KEY_ID_MAX_KEY_LENGTH: Final = 1_000
"""Maximum length of a key id that may cause a read, in characters."""

log = get_logger(__name__)


def read_keys(url: str, config: BrokerConfig) -> KeysOfFile | KeysOfUrl:
    """Return the keys at a URL. Raises ConfigError, MissingExtraError."""
    return KeysOfFile(url) if urlsplit(url).scheme == "file" else KeysOfUrl(url, config)


class KeysOfFile:
    """Keys of a file, which is checked with each token."""

    def __init__(self, url: str) -> None:
        from urllib.request import url2pathname  # noqa: PLC0415 - slow to import, and only for signed tokens

        self._url = url
        self._path = Path(url2pathname(urlsplit(url).path))
        self._modified_ns = self._modification()
        self._keys = JsonWebKeys.read(url)

    def start(self, process: Process) -> None:
        """Do nothing: the file is read when a token arrives."""

    def verify(self, header: Mapping[str, Any], signature: bytes, signed: bytes) -> bool:
        """Whether the signature was made with a key of the file."""
        modified_ns = self._modification()
        if modified_ns != self._modified_ns:
            self._modified_ns = modified_ns
            self._keys = _read_again(self._url) or self._keys
        return self._keys.verify(header, signature, signed)

    def _modification(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0


class KeysOfUrl:
    """Keys of a URL, which is read outside the broker's loop. Thread rule: only the broker's loop."""

    def __init__(self, url: str, config: BrokerConfig) -> None:
        self._url = url
        self._refresh_ms = config.sasl_oauthbearer_jwks_endpoint_refresh_ms
        self._backoff_ms = config.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms
        self._backoff_max_ms = config.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms
        self._keys = JsonWebKeys.read(url)
        self._process: Process | None = None
        self._is_refreshing = False
        self._missing_key_ids: dict[str, int] = {}
        """Time in ms from which an unknown key may cause another read, by key id, the latest last."""

    def start(self, process: Process) -> None:
        """Read the URL periodically while the process lives, beginning at once after a restart."""
        is_restart = self._process is not None
        self._process = process
        self._is_refreshing = False
        PeriodicTask(process, self._refresh_ms, partial(self._refresh, process))
        if is_restart:
            self._refresh(process)

    def verify(self, header: Mapping[str, Any], signature: bytes, signed: bytes) -> bool:
        """Whether the signature was made with a key of the set."""
        if not self._keys.has_key_for(header):
            key_id = header.get("kid")
            if self._process is not None and isinstance(key_id, str):
                self._maybe_expedite_refresh(key_id, self._process)
            return False
        return self._keys.verify(header, signature, signed)

    def _maybe_expedite_refresh(self, key_id: str, process: Process) -> None:
        now_ms = process.clock.now_ms()
        next_ms = self._missing_key_ids.pop(key_id, now_ms)
        if len(key_id) > MISSING_KEY_ID_MAX_KEY_LENGTH:
            return
        is_due = next_ms <= now_ms
        self._missing_key_ids[key_id] = now_ms + MISSING_KEY_ID_CACHE_IN_FLIGHT_MS if is_due else next_ms
        if len(self._missing_key_ids) > MISSING_KEY_ID_CACHE_MAX_ENTRIES:
            del self._missing_key_ids[next(iter(self._missing_key_ids))]
        if is_due:
            self._refresh(process)

    def _refresh(self, process: Process) -> None:
        if not self._is_refreshing:
            self._is_refreshing = True
            self._try(process, 0, process.clock.now_ms() + self._backoff_max_ms)

    def _try(self, process: Process, attempt: int, end_ms: int) -> None:
        process.wait_beside(partial(_read_again, self._url), partial(self._done, process, attempt, end_ms))

    def _done(self, process: Process, attempt: int, end_ms: int, keys: JsonWebKeys | None) -> None:
        left_ms = end_ms - process.clock.now_ms()
        if keys is None and left_ms > 0:
            delay_ms = min(self._backoff_ms << attempt, left_ms)
            process.call_later(delay_ms, self._try, process, attempt + 1, end_ms)
            return
        self._is_refreshing = False
        if keys is not None:
            self._keys = keys
            for key_id in keys.ids:
                self._missing_key_ids.pop(key_id, None)


def _read_again(url: str) -> JsonWebKeys | None:
    """Return the current keys, None if they cannot be read."""
    try:
        return JsonWebKeys.read(url)
    except ConfigError as error:
        log.warning("keys_of_tokens_not_read", reason=str(error))
        return None
