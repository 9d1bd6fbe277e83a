"""Checks of new stores for a running listener; mirrors `SslFactory`.

A. A store cannot be added to a listener without one, and a key store cannot be removed.
B. The new certificate must have the old one's name, unless `ssl.allow.dn.changes`.
C. It must be for all hosts of the old one, unless `ssl.allow.san.changes`.
D. On the inter-broker listener the old and new certificates must trust each other: `CertificateEntries` and
   `SslEngineValidator` try a handshake in both directions.

The messages are Kafka's, with Java's classes. Deliberate difference: D is left out if the old listener has a
key store but no trust store, with which Kafka would not have started.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from broker_sim.hash_order.hash_codes import java_hash_code
from broker_sim.hash_order.java_order import hash_order
from broker_sim.security.certificates import facts_of, is_issued_by_name_of
from broker_sim.security.ssl_stores import load_key_pair, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.security.certificates import CertificateFacts, KeyPair
    from broker_sim.security.ssl_stores import Stores

_CONFIG: Final = "org.apache.kafka.common.config.ConfigException"
_HANDSHAKE: Final = "javax.net.ssl.SSLHandshakeException"
_VALIDATION: Final = "PKIX path validation failed: java.security.cert.CertPathValidatorException: "
_BUILDING: Final = (
    "PKIX path building failed: sun.security.provider.certpath.SunCertPathBuilderException: unable to"
    " find valid certification path to requested target"
)
_NO_ANCHOR: Final = f"{_VALIDATION}Path does not chain with any of the trust anchors"
_EXPIRED: Final = f"{_VALIDATION}validity check failed"
_OUTSIDE_VALIDITY: Final = (9, 10)
"""OpenSSL's error codes for a certificate that is not valid yet or has expired."""
_TURNS: Final = 6


def check_compatible(old: Stores, new: Stores, *, allows_names: bool, allows_hosts: bool) -> None:
    """Raise ConfigError unless A to C hold."""
    if old.pair is None:
        if new.pair is not None:
            refuse("Cannot add SSL keystore to an existing listener for which no keystore was configured.", _CONFIG)
    elif new.pair is None:
        refuse("Cannot remove the SSL keystore from an existing listener for which a keystore was configured.", _CONFIG)
    else:
        _check_entries(old.pair, new.pair, allows_names, allows_hosts)
    if old.trusted is None and new.trusted is not None:
        refuse("Cannot add SSL truststore to an existing listener for which no truststore was configured.", _CONFIG)


def _check_entries(old: KeyPair, new: KeyPair, allows_names: bool, allows_hosts: bool) -> None:
    before, after = facts_of(old.chain), facts_of(new.chain)
    if not allows_names and before.name.casefold() != after.name.casefold():
        refuse(
            "Keystore DistinguishedName does not match:  "
            f"existing={{alias={old.alias}, DN={before.name}}},"
            f" new={{alias={new.alias}, DN={after.name}}}",
            _CONFIG,
        )
    if not allows_hosts and not set(before.hosts) <= set(after.hosts):
        refuse(
            "Keystore SubjectAltNames do not match:  "
            f"existing={{alias={old.alias}, SAN={_as_java_set(before)}}},"
            f" new={{alias={new.alias}, SAN={_as_java_set(after)}}}",
            _CONFIG,
        )


def _as_java_set(facts: CertificateFacts) -> str:
    names = hash_order(facts.hosts, _list_hash)
    return f"[{', '.join(f'[{kind}, {name}]' for kind, name in names)}]"


def _list_hash(entry: tuple[int, str]) -> int:
    """Return Java's hash code of a list of a number and a string."""
    kind, name = entry
    return (31 * (31 + kind) + java_hash_code(name)) & 0xFFFFFFFF


def check_trust(old: Stores, new: Stores, context_of: Callable[[Stores], ssl.SSLContext]) -> None:
    """Raise ConfigError unless D holds; `context_of(stores)` makes the listener's TLS context."""
    for server, client in ((old, new), (new, old)):
        if server.pair is None or client.pair is None or client.trusted is None:
            continue
        for pair in (server.pair, client.pair):
            if not pair.matches:
                refuse("Invalid CertificateVerify signature", _HANDSHAKE)
        try:
            _handshake(context_of(server), _client_context(client))
        except ssl.SSLCertVerificationError as error:
            _refuse_certificate(error, (server, client))
        except ssl.SSLError as error:
            refuse(str(error), _HANDSHAKE)


def _refuse_certificate(error: ssl.SSLCertVerificationError, both: tuple[Stores, Stores]) -> NoReturn:
    if error.verify_code in _OUTSIDE_VALIDITY:
        refuse(_EXPIRED, _HANDSHAKE)
    server, client = both
    assert server.pair is not None
    has_name = is_issued_by_name_of(server.pair.chain, client.trusted or "")
    refuse(_NO_ANCHOR if has_name else _BUILDING, _HANDSHAKE)


def _client_context(stores: Stores) -> ssl.SSLContext:
    assert stores.pair is not None
    assert stores.trusted is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN  # as in Java
    context.load_verify_locations(cadata=stores.trusted)
    load_key_pair(context, stores.pair, stores.key_password, "ssl.keystore")
    return context


def _handshake(server_context: ssl.SSLContext, client_context: ssl.SSLContext) -> None:
    """Make a handshake between both sides in memory. Raises SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server)
    for _ in range(_TURNS):
        for end in (client, server):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
