"""Reads the key store and trust store that are set while a listener runs, like Kafka.

Mirrors the stores of `DefaultSslEngineFactory`. Error messages have Java's class and Kafka's text, because
clients see both.

The stores of a starting listener are read in `ssl_listener`: without `cryptography`, and with messages for the user
who starts a cluster.

Deliberate difference: a JKS store is refused, because only Java reads it; PKCS12 under that name is read.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from broker_sim.errors import ConfigError
from broker_sim.security.certificates import KeyPair, parse_pair, read_pkcs12

if TYPE_CHECKING:
    from broker_sim.config import BrokerConfig

PEM: Final = "PEM"
_ERRORS: Final = "org.apache.kafka.common.errors.InvalidConfigurationException"
_KAFKA: Final = "org.apache.kafka.common.KafkaException"
_ONLY_KEY: Final = "SSL key store password cannot be specified with PEM format, only key password may be specified"
_PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


class Stores(NamedTuple):
    """Key store and trust store of a listener; None for a store that is not set."""

    pair: KeyPair | None
    trusted: str | None
    key_password: str | None = None
    """Password of the key, None if it has none; only keys read at the start keep their password."""


def refuse(text: str, kind: str = _ERRORS) -> NoReturn:
    """Raise ConfigError whose message begins with Java's exception class."""
    raise ConfigError(f"{kind}: {text}")


def read_stores(own_config: BrokerConfig) -> tuple[KeyPair | None, str | None]:
    """Return the stores' current contents: the key store, its key without a password, and the trust store.

    Raises ConfigError, MissingExtraError.
    """
    return _key_store(own_config), _trust_store(own_config)


def _key_store(own: BrokerConfig) -> KeyPair | None:
    chain, key = own.ssl_keystore_certificate_chain, own.ssl_keystore_key
    if key is not None:
        _check_texts(own)
        return _pem_pair(chain or "", key, own.ssl_key_password, "Invalid PEM keystore configs")
    if chain is not None:
        refuse("SSL certificate chain is specified, but private key is not specified")
    path, password = own.ssl_keystore_location, own.ssl_keystore_password
    if path is None:
        if password is not None:
            refuse("SSL key store is not specified, but key store password is specified.")
        return None
    if own.ssl_keystore_type == PEM:
        if password is not None:
            refuse(_ONLY_KEY)
        failed = f"Failed to load PEM SSL keystore {path}"
        text = _read_text(path, failed)
        return _pem_pair(text, text, own.ssl_key_password, failed)
    if password is None:
        refuse("SSL key store is specified, but key store password is not specified.")
    return _read_pkcs12(path, own.ssl_keystore_type, password)


def _check_texts(own: BrokerConfig) -> None:
    """Refuse configurations that exclude a key given as text."""
    if own.ssl_keystore_type != PEM:
        refuse(f"SSL private key can be specified only for PEM, but key store type is {own.ssl_keystore_type}.")
    if own.ssl_keystore_certificate_chain is None:
        refuse("SSL private key is specified, but certificate chain is not specified.")
    if own.ssl_keystore_location is not None:
        refuse("Both SSL key store location and separate private key are specified.")
    if own.ssl_keystore_password is not None:
        refuse(f"{_ONLY_KEY}.")


def _trust_store(own: BrokerConfig) -> str | None:
    kind, path = own.ssl_truststore_type, own.ssl_truststore_location
    password, certificates = own.ssl_truststore_password, own.ssl_truststore_certificates
    no_password = "SSL trust store password cannot be specified for PEM format."  # noqa: S105
    if certificates is not None:
        if kind != PEM:
            refuse(f"SSL trust store certs can be specified only for PEM, but trust store type is {kind}.")
        if path is not None:
            refuse("Both SSL trust store location and separate trust certificates are specified.")
        if password is not None:
            refuse(no_password)
        if not pem_blocks(with_lines(certificates), "CERTIFICATE"):
            refuse("No matching CERTIFICATE entries in PEM file")
        return _pem_chain(certificates, "Invalid PEM truststore configs")
    if path is None:
        if password is not None:
            refuse("SSL trust store is not specified, but trust store password is specified.")
        return None
    if kind == PEM:
        if password is not None:
            refuse(no_password)
        failed = f"Failed to load PEM SSL keystore {path}"
        return _pem_chain(_read_text(path, failed), failed)
    return _read_pkcs12(path, kind, password or "").chain


def _read_text(path: str, failed: str) -> str:
    try:
        return Path(path).read_text("ascii", "replace")
    except OSError:
        refuse(failed)


def _pem_pair(chain: str, key: str, password: str | None, failed: str) -> KeyPair:
    try:
        chain, key = (pem_blocks(with_lines(chain), "CERTIFICATE"), pem_blocks(with_lines(key), "PRIVATE KEY"))
        return parse_pair(chain, key, password)
    except ValueError:
        refuse(failed)


def _pem_chain(certificates: str, failed: str) -> str:
    try:
        return parse_pair(pem_blocks(with_lines(certificates), "CERTIFICATE")).chain
    except ValueError:
        refuse(failed)


def _read_pkcs12(path: str, kind: str, password: str) -> KeyPair:
    try:
        return read_pkcs12(Path(path).read_bytes(), password, path)
    except (OSError, ConfigError):
        refuse(f"Failed to load SSL keystore {path} of type {kind}", _KAFKA)


def with_lines(pem: str) -> str:
    """Return PEM split into lines for OpenSSL; property files may have it in one line."""

    def reflowed(match: re.Match[str]) -> str:
        kind, body = match.groups()
        if ":" in body:  # an encrypted key in the old format has headers
            return match[0]
        return f"-----BEGIN {kind}-----\n{''.join(body.split())}\n-----END {kind}-----\n"

    return _PEM_BLOCK.sub(reflowed, pem.replace("\\n", "\n"))


def pem_blocks(pem: str, kind: str) -> str:
    """Return the blocks of one kind, such as the certificates of a file that also has a key."""
    matches = _PEM_BLOCK.finditer(pem)
    return "".join(f"{block[0]}\n" for block in matches if block[1].endswith(kind))


def load_key_pair(context: ssl.SSLContext, pair: KeyPair, password: str | None, what: str) -> None:
    """Load the certificate into the context; OpenSSL reads it only from files. Raises ConfigError."""
    with tempfile.TemporaryDirectory() as directory:
        chain, key = Path(directory, "chain.pem"), Path(directory, "key.pem")
        chain.write_text(pair.chain, "ascii")
        key.write_text(pair.key, "ascii")
        try:
            # Without a password OpenSSL would prompt for one in the terminal.
            context.load_cert_chain(chain, key, password or "")
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"{what}: certificate or key cannot be used: {error}") from None
