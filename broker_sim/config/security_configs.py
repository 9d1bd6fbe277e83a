"""Configurations of logins, TLS and the authorizer, with Kafka's defaults.

Mirrors `BrokerSecurityConfigs`, `SslConfigs`, `ServerConfigs.AUTHORIZER_CLASS_NAME_CONFIG` and
`StandardAuthorizer.configure`.
"""

from typing import Final

from broker_sim.config.definition import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Configs,
    OneOf,
    UpdateMode,
    at_least,
    declare,
)

_PER_BROKER = UpdateMode.PER_BROKER


class SecurityConfigs(Configs):
    """Logins and TLS; each may be set for a single listener, see `BrokerConfig.for_listener`."""

    sasl_enabled_mechanisms: tuple[str, ...] = declare(
        LIST, ("GSSAPI",), "SASL mechanisms that clients may use; the default is not served.", update_mode=_PER_BROKER
    )
    sasl_server_max_receive_size: int = declare(INT, 524_288, "Maximum size of a request before the login, in bytes.")
    connection_failed_authentication_delay_ms: int = declare(
        INT, 100, "Delay of the response to a failed login, and of closing its connection.", at_least(0)
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = declare(
        STRING, None, "File or URL with the keys of the issuer of tokens; without it the cluster issues them itself."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = declare(
        LONG, 3_600_000, "Interval at which the keys of a URL are refreshed."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = declare(
        LONG, 100, "First delay before reading the keys is retried; it doubles with each retry."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = declare(
        LONG, 10_000, "Longest time for which reading the keys is retried."
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = declare(
        LIST, (), "Audiences, one of which a signed token must have."
    )
    sasl_oauthbearer_expected_issuer: str | None = declare(STRING, None, "Issuer that a signed token must have.")
    sasl_oauthbearer_allow_unverified_audience: bool = declare(
        BOOLEAN,
        False,
        "Whether keys may be configured without an audience; then any audience is accepted.",
        since="4.4",
    )
    sasl_oauthbearer_allow_unverified_issuer: bool = declare(
        BOOLEAN, False, "Whether keys may be configured without an issuer; then any issuer is accepted.", since="4.4"
    )
    sasl_oauthbearer_scope_claim_name: str = declare(STRING, "scope", "The claim of a signed token with its scopes.")
    sasl_oauthbearer_sub_claim_name: str = declare(
        STRING, "sub", "The claim of a signed token with the name of the user."
    )
    sasl_oauthbearer_clock_skew_seconds: int = declare(INT, 30, "Allowed clock skew of the token issuer, in seconds.")
    connections_max_reauth_ms: int = declare(
        LONG, 0, "Time after which a client must reauthenticate or is disconnected; 0 for never."
    )
    delegation_token_secret_key: str | None = declare(
        PASSWORD, None, "Secret that signs delegation tokens; without it they are disabled."
    )
    delegation_token_max_lifetime_ms: int = declare(
        LONG, 7 * 86_400_000, "Maximum lifetime of a delegation token, including renewals.", at_least(1)
    )
    delegation_token_expiry_time_ms: int = declare(
        LONG, 86_400_000, "Time until which a delegation token must be renewed.", at_least(1)
    )
    delegation_token_expiry_check_interval_ms: int = declare(
        LONG, 3_600_000, "Interval of the removal of expired delegation tokens.", at_least(1)
    )
    ssl_client_auth: str = declare(
        STRING,
        "none",
        "Whether clients must have a certificate; on SASL_SSL listeners it is read for one listener only.",
        OneOf(("required", "requested", "none")),
        update_mode=_PER_BROKER,
    )
    ssl_enabled_protocols: tuple[str, ...] = declare(
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        "TLS versions; versions older than the defaults are not supported.",
        update_mode=_PER_BROKER,
    )
    ssl_keystore_type: str = declare(
        STRING, "JKS", "Format of the file, PEM or PKCS12; JKS is not read.", update_mode=_PER_BROKER
    )
    ssl_keystore_location: str | None = declare(
        STRING, None, "File with certificate and key; without one the cluster makes them.", update_mode=_PER_BROKER
    )
    ssl_keystore_password: str | None = declare(
        PASSWORD, None, "The password of that file, for PKCS12.", update_mode=_PER_BROKER
    )
    ssl_keystore_certificate_chain: str | None = declare(
        PASSWORD, None, "The certificate and those above it, as PEM.", update_mode=_PER_BROKER
    )
    ssl_keystore_key: str | None = declare(PASSWORD, None, "The key, as PEM in PKCS8.", update_mode=_PER_BROKER)
    ssl_key_password: str | None = declare(PASSWORD, None, "The password of the key.", update_mode=_PER_BROKER)
    ssl_truststore_type: str = declare(
        STRING, "JKS", "Format of the file, PEM or PKCS12; JKS is not read.", update_mode=_PER_BROKER
    )
    ssl_truststore_location: str | None = declare(
        STRING, None, "File with the certificates that must have signed those of clients.", update_mode=_PER_BROKER
    )
    ssl_truststore_password: str | None = declare(
        PASSWORD, None, "The password of that file, for PKCS12.", update_mode=_PER_BROKER
    )
    ssl_truststore_certificates: str | None = declare(
        PASSWORD, None, "Certificates that must have signed those of clients, as PEM.", update_mode=_PER_BROKER
    )
    ssl_principal_mapping_rules: str = declare(
        STRING, "DEFAULT", "Rules that map the name in a client's certificate to a principal."
    )


STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZERS: Final = ("", STANDARD_AUTHORIZER)
OF_THE_AUTHORIZER: Final = frozenset({"allow.everyone.if.no.acl.found", "super.users"})
"""Configurations of the authorizer: read when a broker starts, and never described with a value."""


class AuthorizerConfigs(Configs):
    """The authorizer and the configurations of Kafka's own one."""

    authorizer_class_name: str = declare(STRING, "", "Authorizer class; if not set, every client may do everything.")
    super_users: str = declare(STRING, "", "Principals that may do everything, separated by semicolons.", internal=True)
    allow_everyone_if_no_acl_found: bool = declare(
        BOOLEAN, False, "Whether everyone may use a resource without ACLs.", internal=True
    )
