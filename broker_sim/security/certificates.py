"""Certificates that a cluster issues itself, so that a test needs no key store; needs `cryptography`.

They are valid from 2020 to 2120, so that they do not depend on virtual time.
"""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_AUTHORITY: Final = "broker-sim"
_FROM: Final = datetime(2020, 1, 1, tzinfo=UTC)
_UNTIL: Final = datetime(2120, 1, 1, tzinfo=UTC)
_EXPIRED: Final = datetime(2021, 1, 1, tzinfo=UTC)
_ELSEWHERE: Final = ("elsewhere.invalid",)
_PKCS8: Final = ("-----BEGIN PRIVATE KEY-----", "-----BEGIN ENCRYPTED PRIVATE KEY-----")


def check_cryptography() -> None:
    """Raise MissingExtraError if `cryptography` is not installed."""
    try:
        import cryptography  # noqa: F401, PLC0415 - an extra
    except ModuleNotFoundError as error:
        text = "cryptography is not installed: pip install 'broker-sim[security]'"
        raise MissingExtraError(text) from error


def generate_key() -> EllipticCurvePrivateKey:
    """Return a new key on the curve P-256. Raises MissingExtraError."""
    check_cryptography()
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - an extra

    return ec.generate_private_key(ec.SECP256R1())


class KeyPair(NamedTuple):
    """A certificate with its chain and its key, as PEM; `repr` does not show the key."""

    chain: str
    key: str
    alias: str = "kafka"
    """Alias of the pair in a key store; for PEM, which has no aliases, Kafka's default."""
    matches: bool = True
    """Whether the key belongs to the certificate."""

    def __repr__(self) -> str:
        return f"KeyPair({len(self.chain)} characters of certificates)"


class CertificateFacts(NamedTuple):
    """The parts of a certificate that Kafka compares."""

    name: str
    """The distinguished name in the format of Java's `X500Principal.toString`."""
    hosts: tuple[tuple[int, str], ...]
    """Subject alternative names, each with the number of its type."""


class Certificates:
    """Issues the certificates of one cluster and its clients, signed by an authority of its own.

    The authority's key is generated on first use. All methods raise MissingExtraError.
    """

    @cached_property
    def _key(self) -> EllipticCurvePrivateKey:
        return generate_key()

    @cached_property
    def authority(self) -> str:
        """The authority's certificate, which clients must trust, as PEM."""
        return _pem(_sign(_AUTHORITY, self._key, self._key, (), is_authority=True))

    def issue(self, name: str, hosts: Iterable[str] = (), *, expired: bool = False) -> KeyPair:
        """Return a certificate for `CN=name` and its key; with `hosts` it is a server certificate."""
        key = generate_key()
        until = _EXPIRED if expired else _UNTIL
        certificate = _sign(name, key, self._key, tuple(hosts), until=until, is_authority=False)
        return KeyPair(_pem(certificate), _key_text(key))

    def for_hosts(self, hosts: Iterable[str], *, expired: bool = False, wrong_host: bool = False) -> KeyPair:
        """Return a broker's certificate for these host names."""
        names = _ELSEWHERE if wrong_host else sorted({*hosts, "localhost", "127.0.0.1"})
        return self.issue("broker", names, expired=expired)

    def for_client(self, name: str) -> KeyPair:
        """Return a client's certificate, `CN=name`."""
        return self.issue(name)


def _pem(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - an extra

    return certificate.public_bytes(Encoding.PEM).decode()


def _key_text(key: PrivateKeyTypes) -> str:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _sign(
    name: str,
    key: EllipticCurvePrivateKey,
    issuer_key: EllipticCurvePrivateKey,
    hosts: tuple[str, ...],
    *,
    until: datetime = _UNTIL,
    is_authority: bool,
) -> x509.Certificate:
    from cryptography import x509  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - the same

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(_AUTHORITY))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_alternative_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _alternative_name(host: str) -> x509.GeneralName:
    from cryptography import x509  # noqa: PLC0415 - an extra

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def read_pkcs12(data: bytes, password: str, place: str) -> KeyPair:
    """Return the contents of a PKCS12 store; a trust store has no key. Raises ConfigError, MissingExtraError."""
    check_cryptography()
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415 - an extra

    try:
        store = pkcs12.load_pkcs12(data, password.encode())
    except ValueError:
        raise ConfigError(f"{place}: the password is wrong, or the file is not a PKCS12 store") from None
    own = [store.cert] if store.cert else []
    chain = "".join(_pem(each.certificate) for each in [*own, *store.additional_certs])
    key = ""
    if store.key is not None:
        key = _key_text(store.key)
    alias = "1"
    if store.cert is not None and store.cert.friendly_name:
        alias = store.cert.friendly_name.decode("utf-8", "replace").lower()
    return KeyPair(chain, key, alias)


def parse_pair(chain: str, key: str | None = None, password: str | None = None) -> KeyPair:
    """Return the contents of PEM texts, the key without its password; without `key`, only certificates.

    Raises ValueError unless there is a certificate and exactly one PKCS8 key, and MissingExtraError.
    """
    check_cryptography()
    from cryptography import x509  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - the same

    certificates = x509.load_pem_x509_certificates(chain.encode())
    parsed = "".join(_pem(each) for each in certificates)
    if key is None:
        return KeyPair(parsed, "")
    if key.count("-----BEGIN ") != 1 or not key.startswith(_PKCS8):
        raise ValueError("exactly one PKCS8 private key is expected")
    try:
        private = serialization.load_pem_private_key(key.encode(), None if password is None else password.encode())
    except TypeError as error:  # a password for an unencrypted key, or no password for an encrypted one
        raise ValueError(str(error)) from None
    matches = private.public_key() == certificates[0].public_key()
    return KeyPair(parsed, _key_text(private), matches=matches)


def facts_of(chain: str) -> CertificateFacts:
    """Return the compared parts of the first certificate. Raises MissingExtraError."""
    check_cryptography()
    from cryptography import x509  # noqa: PLC0415 - an extra

    certificate = x509.load_pem_x509_certificate(chain.encode())
    name = ", ".join(each.rfc4514_string() for each in reversed(certificate.subject.rdns))
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return CertificateFacts(name, ())
    kinds: dict[type[x509.GeneralName], int] = {
        x509.RFC822Name: 1,
        x509.DNSName: 2,
        x509.UniformResourceIdentifier: 6,
        x509.IPAddress: 7,
    }
    hosts = [(kinds[type(each)], str(each.value)) for each in names if type(each) in kinds]
    return CertificateFacts(name, tuple(dict.fromkeys(hosts)))


def is_issued_by_name_of(chain: str, trusted: str) -> bool:
    """Whether the issuer of the chain's last certificate is one of the `trusted` certificates, by name."""
    from cryptography import x509  # noqa: PLC0415 - an extra

    last = x509.load_pem_x509_certificates(chain.encode())[-1]
    issuers = x509.load_pem_x509_certificates(trusted.encode())
    return any(last.issuer == each.subject for each in issuers)
