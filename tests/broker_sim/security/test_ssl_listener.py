"""TLS as configurations say it: handshakes between two contexts in memory."""

import ssl
from contextlib import suppress
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate

from broker_sim.config import BrokerConfig
from broker_sim.errors import ConfigError, WrongStateError
from broker_sim.security import Certificates
from broker_sim.security.ssl_listener import SslListener
from broker_sim.security.ssl_stores import load_key_pair

HOST = "kafka.example"
AUTH = "ssl.client.auth"


@pytest.fixture(scope="module")
def made():
    return Certificates()


@pytest.fixture(scope="module")
def pair(made):
    return made.for_hosts([HOST])


@pytest.fixture(scope="module")
def listener(made):
    """Return a function that reads configurations; the listener is called OUTSIDE."""

    def read(configs, has_logins=False):
        config = BrokerConfig.from_mapping(configs)
        return SslListener(config, "OUTSIDE", made, [HOST], has_logins=has_logins)

    return read


@pytest.fixture(scope="module")
def client(made):
    """Return a function that makes a client's context, with a certificate of that name if one is given."""

    def make(name=None, version=None):
        context = ssl.create_default_context(cadata=made.authority)
        if name is not None:
            load_key_pair(context, made.for_client(name), None, "client")
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context

    return make


def handshake(server_context, client_context):
    """Return both ends after a handshake. Raises SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=HOST)
    for _ in range(4):
        for end in (client, server):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    client.write(b"x")
    assert server.read() == b"x"
    return server, client


def principal(listener, client_context):
    server, _ = handshake(listener.context, client_context)
    transport = SimpleNamespace(get_extra_info={"peercert": server.getpeercert()}.get)
    return listener.principal_of(transport)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_certificate_that_the_cluster_makes_is_trusted_by_its_clients(listener, client, version):
    _, end = handshake(listener({}).context, client(version=version))
    assert end.version() == {0x303: "TLSv1.2", 0x304: "TLSv1.3"}[version]
    names = {name for _, name in end.getpeercert()["subjectAltName"]}
    assert names == {HOST, "localhost", "127.0.0.1"}


def test_certificate_of_an_unknown_authority_is_not_trusted(listener):
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        handshake(listener({}).context, ssl.create_default_context())


def test_versions_that_are_not_enabled_are_refused(listener, client):
    only = listener({"ssl.enabled.protocols": "TLSv1.3"})
    with pytest.raises(ssl.SSLError):
        handshake(only.context, client(version=ssl.TLSVersion.TLSv1_2))


@pytest.mark.parametrize(
    ("auth", "name", "expected"),
    [
        ("none", "billing", "User:ANONYMOUS"),
        ("requested", None, "User:ANONYMOUS"),
        ("requested", "billing", "User:CN=billing"),
        ("required", "billing", "User:CN=billing"),
    ],
)
def test_principal_of_a_certificate(listener, client, auth, name, expected):
    assert str(principal(listener({AUTH: auth}), client(name))) == expected


def test_required_certificate_that_is_missing_ends_the_handshake(listener, client):
    with pytest.raises(ssl.SSLError):
        handshake(listener({AUTH: "required"}).context, client(version=ssl.TLSVersion.TLSv1_2))


def test_rules_map_the_name(listener, client):
    configs = {AUTH: "required", "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U"}
    assert str(principal(listener(configs), client("billing"))) == "User:BILLING"
    configs["ssl.principal.mapping.rules"] = "RULE:^OU=(.*)$/$1/"
    assert principal(listener(configs), client("billing")) is None


def test_listener_with_logins_asks_for_certificates_only_itself(listener):
    assert not listener({AUTH: "required"}, has_logins=True).wants_certificate
    assert listener({f"listener.name.outside.{AUTH}": "required"}, has_logins=True).wants_certificate


def as_texts(pair, _):
    return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": pair.chain, "ssl.keystore.key": pair.key}


def as_one_line(pair, _):
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": pair.chain.replace("\n", " "),
        "ssl.keystore.key": pair.key.replace("\n", "\\n"),
    }


def as_pem_file(pair, path):
    path.write_text(pair.key + pair.chain)
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}


def as_pkcs12(pair, path, kind="PKCS12"):
    key = serialization.load_pem_private_key(pair.key.encode(), None)
    certificate = load_pem_x509_certificate(pair.chain.encode())
    encryption = serialization.BestAvailableEncryption(b"secret")
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"x", key, certificate, None, encryption))
    return {"ssl.keystore.type": kind, "ssl.keystore.location": str(path), "ssl.keystore.password": "secret"}


def as_pkcs12_called_jks(pair, path):
    return as_pkcs12(pair, path, "JKS")


@pytest.mark.parametrize("stored", [as_texts, as_one_line, as_pem_file, as_pkcs12, as_pkcs12_called_jks])
def test_key_stores(listener, client, pair, tmp_path, stored):
    found = listener(stored(pair, tmp_path / "store"))
    assert "".join(found.trusted.split()) == "".join(pair.chain.split())
    _, end = handshake(found.context, client())
    assert HOST in {name for _, name in end.getpeercert()["subjectAltName"]}


def test_trust_store_decides_which_certificates_are_accepted(listener, client, pair, tmp_path):
    others = Certificates()
    path = tmp_path / "trusted.pem"
    path.write_text(others.authority)
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(path)}
    found = listener({AUTH: "required", **as_texts(pair, None), **trusted})
    with pytest.raises(ssl.SSLError):
        handshake(found.context, client("billing", ssl.TLSVersion.TLSv1_2))
    context = client()
    load_key_pair(context, others.for_client("audit"), None, "client")
    assert str(principal(found, context)) == "User:CN=audit"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"expired": True}, "certificate has expired"), ({"wrong_host": True}, "Hostname mismatch")],
)
def test_certificates_that_clients_refuse(listener, client, options, message):
    found = listener({})
    found.renew(**options)
    with pytest.raises(ssl.SSLError, match=message):
        handshake(found.context, client())
    found.renew()
    handshake(found.context, client())


def test_key_store_is_read_again(listener, client, made, pair, tmp_path):
    path = tmp_path / "store"
    found = listener(as_pem_file(pair, path))

    def serial():
        return handshake(found.context, client())[1].getpeercert()["serialNumber"]

    before = serial()
    as_pem_file(made.for_hosts([HOST]), path)
    assert serial() == before
    found.renew()
    assert serial() != before
    with pytest.raises(WrongStateError, match="its own key store"):
        found.renew(expired=True)


def test_reset_brings_back_the_stores_of_the_start_and_makes_none(listener, client):
    found = listener({AUTH: "required"})

    def serial():
        return handshake(found.context, client("billing"))[1].getpeercert()["serialNumber"]

    before = serial()
    found.reset()
    assert serial() == before
    found.renew()
    assert serial() != before
    found.reset()
    assert serial() == before


def test_reset_forgets_configurations_that_were_set_since(listener, client, made, pair):
    found = listener(as_texts(pair, None))
    other = as_texts(made.for_hosts([HOST]), None)
    found.reconfigure({f"listener.name.outside.{name}": text for name, text in other.items()})
    assert "".join(found.trusted.split()) != "".join(pair.chain.split())
    found.reset()
    assert "".join(found.trusted.split()) == "".join(pair.chain.split())
    handshake(found.context, client())


def test_key_with_a_password_is_used_at_the_start_and_afterwards(listener, client, pair, made):
    def with_password(pair):
        key = serialization.load_pem_private_key(pair.key.encode(), None).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
        return as_texts(pair._replace(key=key.decode()), None) | {"ssl.key.password": "secret"}

    found = listener(with_password(pair))
    handshake(found.context, client())
    other = with_password(made.for_hosts([HOST]))
    found.reconfigure({f"listener.name.outside.{name}": text for name, text in other.items()})
    handshake(found.context, client())
    found.reset()
    handshake(found.context, client())


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"ssl.keystore.location": "/no/such"}, "/no/such: No such file"),
        ({"ssl.keystore.type": "BKS"}, "ssl.keystore.type must be one of PEM, PKCS12, JKS"),
        ({"ssl.keystore.key": "x"}, "set both ssl.keystore.certificate.chain and ssl.keystore.key"),
        ({"ssl.keystore.key": "x", "ssl.keystore.certificate.chain": "x"}, "PEM texts need ssl.keystore.type=PEM"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "must have some of TLSv1.2, TLSv1.3, not TLSv1.1"),
        ({AUTH: "maybe"}, "String must be one of: required, requested, none"),
    ],
)
def test_refusals(listener, configs, message):
    with pytest.raises(ConfigError, match=message):
        listener(configs)


def test_jks_is_refused_with_a_remedy(listener, tmp_path):
    path = tmp_path / "store.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    with pytest.raises(ConfigError, match="which only Java reads; convert it: keytool"):
        listener({"ssl.keystore.location": str(path)})


def test_wrong_password_of_a_store_is_not_shown(listener, pair, tmp_path):
    configs = as_pkcs12(pair, tmp_path / "store") | {"ssl.keystore.password": "unique"}
    with pytest.raises(ConfigError, match="the password is wrong") as error:
        listener(configs)
    assert "unique" not in f"{error.value}{BrokerConfig.from_mapping(configs)!r}"


def test_keys_are_in_no_text(pair):
    assert "PRIVATE" not in repr(pair)
