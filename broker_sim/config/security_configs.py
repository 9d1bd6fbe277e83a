"""Configurations of logins and TLS; mirrors `BrokerSecurityConfigs` and `SslConfigs`, with Kafka's defaults."""

from dataclasses import dataclass

from broker_sim.config.definition import INT, LIST, LONG, PASSWORD, STRING, OneOf, UpdateMode, at_least, declare

_PER_BROKER = UpdateMode.PER_BROKER


@dataclass(frozen=True, kw_only=True)
class SecurityConfigs:
    """How clients log in; each may be set for one listener alone, see `BrokerConfig.for_listener`."""

    sasl_enabled_mechanisms: tuple[str, ...] = declare(
        LIST, ("GSSAPI",), "By which mechanisms clients may log in; the default is not served.", update_mode=_PER_BROKER
    )
    sasl_server_max_receive_size: int = declare(
        INT, 524_288, "Largest request in bytes of a client that has not logged in."
    )
    connection_failed_authentication_delay_ms: int = declare(
        INT, 100, "How long the answer to a failed login, and the close of its connection, are delayed.", at_least(0)
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = declare(
        STRING, None, "The file or URL with the keys of who signs tokens; without it the cluster signs them itself."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = declare(
        LONG, 3_600_000, "How often the keys of a URL are read again."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = declare(
        LONG, 100, "How soon keys that could not be read are tried again, doubled each time."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = declare(
        LONG, 10_000, "How long keys that could not be read are tried again."
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = declare(
        LIST, (), "Of whom a signed token must name one as its audience."
    )
    sasl_oauthbearer_expected_issuer: str | None = declare(STRING, None, "Whom a signed token must name as its issuer.")
    sasl_oauthbearer_scope_claim_name: str = declare(STRING, "scope", "The claim of a signed token with its scopes.")
    sasl_oauthbearer_sub_claim_name: str = declare(
        STRING, "sub", "The claim of a signed token with the name of the user."
    )
    sasl_oauthbearer_clock_skew_seconds: int = declare(INT, 30, "How far the clock of who signs tokens may be off.")
    connections_max_reauth_ms: int = declare(
        LONG, 0, "How long a login is good for; clients log in again before, others are cut off. 0 is for ever."
    )
    delegation_token_secret_key: str | None = declare(
        PASSWORD, None, "The secret that delegation tokens are made with; without it there are none."
    )
    delegation_token_max_lifetime_ms: int = declare(
        LONG, 7 * 86_400_000, "How long a delegation token can be renewed.", at_least(1)
    )
    delegation_token_expiry_time_ms: int = declare(
        LONG, 86_400_000, "How long a delegation token is good for until it is renewed.", at_least(1)
    )
    delegation_token_expiry_check_interval_ms: int = declare(
        LONG, 3_600_000, "How often expired delegation tokens are removed.", at_least(1)
    )
    ssl_client_auth: str = declare(
        STRING,
        "none",
        "Whether clients are asked for a certificate; where they log in, for one listener only.",
        OneOf(("required", "requested", "none")),
        update_mode=_PER_BROKER,
    )
    ssl_enabled_protocols: tuple[str, ...] = declare(
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The versions of TLS; older ones than these are not served.",
        update_mode=_PER_BROKER,
    )
    ssl_keystore_type: str = declare(STRING, "JKS", "PEM or PKCS12; JKS itself is not read.", update_mode=_PER_BROKER)
    ssl_keystore_location: str | None = declare(
        STRING, None, "The file with certificate and key; without any, the cluster makes them.", update_mode=_PER_BROKER
    )
    ssl_keystore_password: str | None = declare(
        PASSWORD, None, "The password of that file, for PKCS12.", update_mode=_PER_BROKER
    )
    ssl_keystore_certificate_chain: str | None = declare(
        PASSWORD, None, "The certificate and those above it, as PEM.", update_mode=_PER_BROKER
    )
    ssl_keystore_key: str | None = declare(PASSWORD, None, "The key, as PEM in PKCS8.", update_mode=_PER_BROKER)
    ssl_key_password: str | None = declare(PASSWORD, None, "The password of the key.", update_mode=_PER_BROKER)
    ssl_truststore_type: str = declare(STRING, "JKS", "PEM or PKCS12; JKS itself is not read.", update_mode=_PER_BROKER)
    ssl_truststore_location: str | None = declare(
        STRING, None, "The file with the certificates that those of clients must be signed by.", update_mode=_PER_BROKER
    )
    ssl_truststore_password: str | None = declare(
        PASSWORD, None, "The password of that file, for PKCS12.", update_mode=_PER_BROKER
    )
    ssl_truststore_certificates: str | None = declare(
        PASSWORD, None, "The same certificates, as PEM.", update_mode=_PER_BROKER
    )
    ssl_principal_mapping_rules: str = declare(
        STRING, "DEFAULT", "How the name of a client's certificate becomes that of a principal."
    )
