"""TLS of a listener: its certificate and trusted certificates, from its configurations.

Mirrors `SslFactory`, `DefaultSslEngineFactory` and the part of `DefaultKafkaPrincipalBuilder` for TLS.

    ssl.keystore.type   PEM      texts in the configurations, or a file
                        PKCS12   a file, read by `cryptography`
                        JKS      Kafka's default; refused, unless the file is PKCS12, which Java accepts too

Deliberate differences: a listener without a key store has a certificate issued by the cluster, and trusts
certificates issued by the cluster. TLS is OpenSSL's, so cipher suites and algorithms cannot be configured.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim.config import PER_LISTENER, listener_values
from broker_sim.errors import ConfigError, WrongStateError
from broker_sim.metadata.kafka_principal import ANONYMOUS, USER_TYPE, KafkaPrincipal
from broker_sim.security.certificates import KeyPair, read_pkcs12
from broker_sim.security.ssl_compatibility import check_compatible, check_trust
from broker_sim.security.ssl_principal_mapper import SslPrincipalMapper, distinguished_name
from broker_sim.security.ssl_stores import PEM, Stores, load_key_pair, pem_blocks, read_stores, with_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.security.certificates import Certificates

UPDATE_FAILED: Final = (
    "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of"
    " SSLFactory failed: {} for configuration Invalid dynamic configuration"
)
ALLOW_NAMES: Final = "ssl.allow.dn.changes"
ALLOW_HOSTS: Final = "ssl.allow.san.changes"
STORE_TYPES: Final = (PEM, "PKCS12", "JKS")
JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
CLIENT_AUTH: Final = "ssl.client.auth"
_VERIFY: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class SslListener:
    """The TLS contexts of a listener and its stores, which may change while it runs.

    Without configured stores, a certificate issued by the cluster and its authority take their place.
    """

    def __init__(
        self,
        config: BrokerConfig,
        listener: str,
        certificates: Certificates,
        hosts: Iterable[str],
        *,
        has_logins: bool,
        is_inter_broker: bool = False,
    ) -> None:
        self._listener = listener
        self._static = config.for_listener(listener)
        self._certificates = certificates
        self._hosts = tuple(hosts)
        self._is_inter_broker = is_inter_broker
        auth = self._static.ssl_client_auth
        # As in Kafka, a SASL listener requests certificates only if its own configuration says so.
        if has_logins and f"listener.name.{listener.lower()}.{CLIENT_AUTH}" not in config.originals:
            auth = "none"
        self._verify_mode = _VERIFY[auth]
        self.wants_certificate = auth != "none"
        """Whether the listener requests a client certificate."""
        self.mapper = SslPrincipalMapper(self._static.ssl_principal_mapping_rules)
        self._values: Mapping[str, str] = {}
        """The current dynamic configurations."""
        self._modified = self._modified_now({})
        self._stores = self._at_start = self._read_static()
        self.context = self._make_context(self._stores)
        """TLS context of the listening socket. Later stores have a new context, which handshakes switch to."""
        self._current = self.context

    @property
    def trusted(self) -> str:
        """The certificates that a client must trust, as PEM."""
        if self._has_own_key_store:
            assert self._stores.pair is not None
            return self._stores.pair.chain
        return self._certificates.authority

    def principal_of(self, transport: Any) -> KafkaPrincipal | None:
        """Return the principal of the client's certificate; None if no mapping rule matches."""
        certificate = transport.get_extra_info("peercert")
        if not certificate:
            return ANONYMOUS
        name = self.mapper.name_of(distinguished_name(certificate["subject"]))
        return None if name is None else KafkaPrincipal(USER_TYPE, name)

    def renew(self, *, expired: bool = False, wrong_host: bool = False) -> None:
        """Use a new certificate, or read the key store again.

        With `expired` or `wrong_host` clients will refuse the new certificate. Raises ConfigError,
        WrongStateError.
        """
        if not self._has_own_key_store:
            pair = self._certificates.for_hosts(self._hosts, expired=expired, wrong_host=wrong_host)
            self._use(self._stores._replace(pair=pair), self._values)
        elif expired or wrong_host:
            raise WrongStateError("the listener has its own key store; put such a certificate there, then renew it")
        else:
            stores = self._read(self._values) if self._values else self._read_static()
            self._use(stores, self._values)

    def reset(self) -> None:
        """Restore the stores with which the listener was started."""
        if self._stores is not self._at_start:
            self._use(self._at_start, {})

    def validate(self, dynamic: Mapping[str, str]) -> None:
        """Raise ConfigError with Kafka's message if these configurations are invalid for the listener.

        `dynamic` are all dynamic configurations of the broker. Mirrors `SslFactory.validateReconfiguration`.
        """
        values = self._relevant(dynamic)
        if values != self._values:
            self._checked(values)

    def reconfigure(self, dynamic: Mapping[str, str], *, is_start: bool = False) -> None:
        """Use the stores of these configurations for new connections; open connections stay.

        A file that has changed since it was read is read again. Raises ConfigError as `validate` without
        changing anything; with `is_start` there is no comparison with earlier stores.
        """
        values = self._relevant(dynamic)
        if values != self._values or self._modified_now(values) != self._modified:
            self._use(self._read(values) if is_start else self._checked(values), values)

    @property
    def _has_own_key_store(self) -> bool:
        own = self._own_config(self._values)
        return own.ssl_keystore_location is not None or own.ssl_keystore_key is not None

    def _relevant(self, dynamic: Mapping[str, str]) -> dict[str, str]:
        values = listener_values(dynamic, self._listener)
        return {name: text for name, text in values.items() if name in PER_LISTENER}

    def _own_config(self, values: Mapping[str, str]) -> BrokerConfig:
        return self._static.with_dynamic(values)

    def _checked(self, values: Mapping[str, str]) -> Stores:
        """Return the stores of these configurations. Raises ConfigError with Kafka's message."""
        others = self._static.others
        try:
            stores = self._read(values)
            check_compatible(
                self._stores,
                stores,
                allows_names=_is_true(others.get(ALLOW_NAMES)),
                allows_hosts=_is_true(others.get(ALLOW_HOSTS)),
            )
            if self._is_inter_broker:
                check_trust(self._stores, stores, self._make_context)
        except ConfigError as error:
            raise ConfigError(UPDATE_FAILED.format(error)) from None
        return stores

    def _read(self, values: Mapping[str, str]) -> Stores:
        """Return the current stores, the key without its password. Raises ConfigError."""
        pair, trusted = read_stores(self._own_config(values))
        if pair is None and self._has_own_key_store:
            pair = self._certificates.for_hosts(self._hosts)
        elif pair is None:
            pair = self._stores.pair
        if trusted is None and _key_store(self._static) is None:
            trusted = self._certificates.authority
        return Stores(pair, trusted)

    def _read_static(self) -> Stores:
        """Return the stores of the broker's static configurations.

        Unlike `ssl_stores`, it passes PEM to OpenSSL unchanged, so it needs no `cryptography`, and its error
        messages are for the user who starts a cluster. Raises ConfigError.
        """
        pair, trusted = _key_store(self._static), _trust_store(self._static) or None
        if pair is None:
            certificate = self._certificates.for_hosts(self._hosts)
            return Stores(certificate, trusted or self._certificates.authority)
        return Stores(pair, trusted, self._static.ssl_key_password)

    def _modified_now(self, values: Mapping[str, str]) -> list[int]:
        """Return the modification times of the stores' files."""
        own = self._own_config(values)
        paths = [own.ssl_keystore_location, own.ssl_truststore_location]
        times = []
        for path in filter(None, paths):
            with suppress(OSError):
                times.append(Path(path).stat().st_mtime_ns)
        return times

    def _make_context(self, stores: Stores) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # A client that resumes a session does not check the certificate again.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        _set_versions(context, self._static.ssl_enabled_protocols)
        context.verify_mode = self._verify_mode
        if stores.trusted:
            context.load_verify_locations(cadata=stores.trusted)
        elif context.verify_mode is not ssl.CERT_NONE:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        # As in Kafka, a key that does not match the certificate is accepted, and handshakes fail.
        if stores.pair is not None and stores.pair.matches:
            load_key_pair(context, stores.pair, stores.key_password, "ssl.keystore")
        return context

    def _use(self, stores: Stores, values: Mapping[str, str]) -> None:
        """Use these stores for new handshakes."""
        self._current = self._make_context(stores)
        self._stores, self._values = stores, values
        self._modified = self._modified_now(values)
        self.context.sni_callback = self._take_current

    def _take_current(
        self,
        connection: ssl.SSLObject,
        server_name: str | None,  # noqa: ARG002 - all names have the same certificate
        context: ssl.SSLContext,  # noqa: ARG002 - as OpenSSL calls it
    ) -> None:
        """Give a handshake the context of the newest stores: that of a listening socket cannot be replaced."""
        connection.context = self._current


def _read_store(
    prefix: str, store_type: str, location: str | None, password: str | None, texts: KeyPair | None
) -> KeyPair | None:
    """Return the contents of a key store or trust store, None if none is configured. Raises ConfigError.

    `prefix` begins the names of its configurations; `texts` are its PEM texts, if these are configured.
    """
    kind = store_type.upper()
    if kind not in STORE_TYPES:
        raise ConfigError(f"{prefix}.type must be one of {', '.join(STORE_TYPES)}, not {store_type!r}")
    if location is None:
        if texts is not None and kind != PEM:
            raise ConfigError(f"{prefix}: PEM texts need {prefix}.type=PEM")
        return texts
    if texts is not None:
        raise ConfigError(f"set {prefix}.location or PEM texts, not both")
    place = f"{prefix}.location {location}"
    try:
        data = Path(location).read_bytes()
    except OSError as error:
        raise ConfigError(f"{place}: {error.strerror or error}") from None
    if kind == PEM:
        text = data.decode("ascii", "replace")
        return KeyPair(pem_blocks(text, "CERTIFICATE"), pem_blocks(text, "KEY"))
    if data.startswith(JKS_MAGIC):
        raise ConfigError(
            f"{place} is a JKS store, which only Java reads; convert it: keytool -importkeystore -deststoretype PKCS12"
        )
    return read_pkcs12(data, password or "", place)


def _is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"


def _key_store(own_config: BrokerConfig) -> KeyPair | None:
    chain, key = own_config.ssl_keystore_certificate_chain, own_config.ssl_keystore_key
    if (chain is None) != (key is None):
        raise ConfigError("set both ssl.keystore.certificate.chain and ssl.keystore.key, or neither")
    return _read_store(
        "ssl.keystore",
        own_config.ssl_keystore_type,
        own_config.ssl_keystore_location,
        own_config.ssl_keystore_password,
        None if chain is None or key is None else KeyPair(with_lines(chain), with_lines(key)),
    )


def _trust_store(own_config: BrokerConfig) -> str:
    certificates = own_config.ssl_truststore_certificates
    pair = _read_store(
        "ssl.truststore",
        own_config.ssl_truststore_type,
        own_config.ssl_truststore_location,
        own_config.ssl_truststore_password,
        None if certificates is None else KeyPair(with_lines(certificates), ""),
    )
    return "" if pair is None else pair.chain


def _set_versions(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    versions = [_VERSIONS[name] for name in names if name in _VERSIONS]
    if not versions:
        raise ConfigError(f"ssl.enabled.protocols must have some of {', '.join(_VERSIONS)}, not {','.join(names)}")
    context.minimum_version, context.maximum_version = min(versions), max(versions)
