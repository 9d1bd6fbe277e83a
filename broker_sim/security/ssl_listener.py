"""TLS of a listener: its certificate and whom it trusts, as its configurations say.

Mirrors `SslFactory`, `DefaultSslEngineFactory` and the part of `DefaultKafkaPrincipalBuilder` for TLS.

    ssl.keystore.type   PEM      texts in the configurations, or a file
                        PKCS12   a file, read by `cryptography`
                        JKS      Kafka's default; refused, unless the file is PKCS12, which Java takes too

Deliberate differences: a listener without a key store has a certificate that the cluster makes, and trusts
those that the cluster makes. TLS is OpenSSL's, so cipher suites and algorithms are not configured.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.errors import ConfigError, WrongStateError
from broker_sim.metadata.kafka_principal import ANONYMOUS, USER_TYPE, KafkaPrincipal
from broker_sim.security.certificates import KeyPair, read_pkcs12
from broker_sim.security.ssl_principal_mapper import SslPrincipalMapper, distinguished_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.config import BrokerConfig
    from broker_sim.security.certificates import Certificates

__all__ = ["SslListener", "load_key_pair", "ssl_listener"]

PEM: Final = "PEM"
STORE_TYPES: Final = (PEM, "PKCS12", "JKS")
JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
CLIENT_AUTH: Final = "ssl.client.auth"
_PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_VERIFY: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class SslListener(NamedTuple):
    """What connections of a listener need for TLS."""

    context: ssl.SSLContext
    mapper: SslPrincipalMapper
    trusted: str
    """The certificates that a client must trust, as PEM."""
    wants_certificate: bool
    """Whether clients are asked for a certificate."""
    renew: Callable[..., None]
    """Takes a new certificate; `expired=True` or `wrong_host=True` asks for one that clients refuse."""

    def principal_of(self, transport: Any) -> KafkaPrincipal | None:
        """Return who the client is by its certificate; None when no rule matches it."""
        certificate = transport.get_extra_info("peercert")
        if not certificate:
            return ANONYMOUS
        name = self.mapper.name_of(distinguished_name(certificate["subject"]))
        return None if name is None else KafkaPrincipal(USER_TYPE, name)


class _Store(NamedTuple):
    """The configurations of a key store or a trust store."""

    prefix: str
    type: str
    location: str | None
    password: str | None

    def read(self, texts: KeyPair | None) -> KeyPair | None:
        """Return what is in it, None if there is none. Raises ConfigError."""
        kind = self.type.upper()
        if kind not in STORE_TYPES:
            raise ConfigError(
                f"{self.prefix}.type must be one of {', '.join(STORE_TYPES)}, not {self.type!r}"
            )
        if self.location is None:
            if texts is not None and kind != PEM:
                raise ConfigError(f"{self.prefix}: PEM texts need {self.prefix}.type=PEM")
            return texts
        if texts is not None:
            raise ConfigError(f"give {self.prefix}.location or PEM texts, not both")
        place = f"{self.prefix}.location {self.location}"
        try:
            data = Path(self.location).read_bytes()
        except OSError as error:
            raise ConfigError(f"{place}: {error.strerror or error}") from None
        if kind == PEM:
            text = data.decode("ascii", "replace")
            return KeyPair(_blocks(text, "CERTIFICATE"), _blocks(text, "KEY"))
        if data.startswith(JKS_MAGIC):
            raise ConfigError(
                f"{place} is a JKS store, which only Java reads; convert it: keytool"
                " -importkeystore -deststoretype PKCS12"
            )
        return read_pkcs12(data, self.password or "", place)


def ssl_listener(
    config: BrokerConfig,
    listener: str,
    certificates: Certificates,
    hosts: Iterable[str],
    *,
    has_logins: bool,
) -> SslListener:
    """Return the TLS of a listener; without a key store `certificates` makes one for the hosts.

    Raises ConfigError, MissingExtraError.
    """
    own_config = config.for_listener(listener)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # A client that resumes a session does not look at the certificate again.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    _set_versions(context, own_config.ssl_enabled_protocols)
    auth = own_config.ssl_client_auth
    # As in Kafka: where clients log in, certificates are asked for only if that very listener says so.
    if has_logins and f"listener.name.{listener.lower()}.{CLIENT_AUTH}" not in config.originals:
        auth = "none"
    context.verify_mode = _VERIFY[auth]
    pair = _key_store(own_config)
    trusted_by_clients = certificates.authority.certificate if pair is None else pair.chain
    trusted = _trust_store(own_config) or ("" if pair is not None else trusted_by_clients)
    if trusted:
        context.load_verify_locations(cadata=trusted)
    elif context.verify_mode is not ssl.CERT_NONE:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    found = SslListener(
        context,
        SslPrincipalMapper(own_config.ssl_principal_mapping_rules),
        trusted_by_clients,
        auth != "none",
        partial(_load_certificate, context, own_config, certificates, tuple(hosts)),
    )
    found.renew()
    return found


def _load_certificate(
    context: ssl.SSLContext,
    own_config: BrokerConfig,
    certificates: Certificates,
    hosts: tuple[str, ...],
    *,
    expired: bool = False,
    wrong_host: bool = False,
) -> None:
    """Let connections from now on see the certificate of the key store as it is now, or a new one.

    Raises ConfigError, WrongStateError.
    """
    pair = _key_store(own_config)
    if pair is None:
        pair = certificates.for_hosts(hosts, expired=expired, wrong_host=wrong_host)
    elif expired or wrong_host:
        raise WrongStateError(
            "a listener has a key store of its own; put such a certificate there, and renew it"
        )
    load_key_pair(context, pair, own_config.ssl_key_password, "ssl.keystore")


def _key_store(own_config: BrokerConfig) -> KeyPair | None:
    chain, key = own_config.ssl_keystore_certificate_chain, own_config.ssl_keystore_key
    if (chain is None) != (key is None):
        raise ConfigError(
            "give ssl.keystore.certificate.chain and ssl.keystore.key, or none of them"
        )
    store = _Store(
        "ssl.keystore",
        own_config.ssl_keystore_type,
        own_config.ssl_keystore_location,
        own_config.ssl_keystore_password,
    )
    return store.read(None if chain is None or key is None else KeyPair(_lines(chain), _lines(key)))


def _trust_store(own_config: BrokerConfig) -> str:
    certificates = own_config.ssl_truststore_certificates
    store = _Store(
        "ssl.truststore",
        own_config.ssl_truststore_type,
        own_config.ssl_truststore_location,
        own_config.ssl_truststore_password,
    )
    found = store.read(None if certificates is None else KeyPair(_lines(certificates), ""))
    return "" if found is None else found.chain


def _lines(pem: str) -> str:
    """Return PEM with the lines that OpenSSL wants; property files have it in one line too."""

    def reflowed(found: re.Match[str]) -> str:
        kind, body = found.groups()
        if ":" in body:  # an encrypted key of the old form has headers
            return found[0]
        return f"-----BEGIN {kind}-----\n{''.join(body.split())}\n-----END {kind}-----\n"

    return _PEM_BLOCK.sub(reflowed, pem.replace("\\n", "\n"))


def _blocks(pem: str, kind: str) -> str:
    """Return the blocks of one kind: clients are told the certificates of a file, and not its key."""
    found = _PEM_BLOCK.finditer(pem)
    return "".join(f"{block[0]}\n" for block in found if block[1].endswith(kind))


def load_key_pair(context: ssl.SSLContext, pair: KeyPair, password: str | None, what: str) -> None:
    """Let the context use the certificate; OpenSSL reads it from files only. Raises ConfigError."""
    with tempfile.TemporaryDirectory() as directory:
        chain, key = Path(directory, "chain.pem"), Path(directory, "key.pem")
        chain.write_text(pair.chain, "ascii")
        key.write_text(pair.key, "ascii")
        try:
            # Without a password OpenSSL would ask for one in the terminal.
            context.load_cert_chain(chain, key, password or "")
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"{what}: certificate or key cannot be used: {error}") from None


def _set_versions(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    versions = [_VERSIONS[name] for name in names if name in _VERSIONS]
    if not versions:
        raise ConfigError(
            f"ssl.enabled.protocols must have some of {', '.join(_VERSIONS)}, not {','.join(names)}"
        )
    context.minimum_version, context.maximum_version = min(versions), max(versions)
