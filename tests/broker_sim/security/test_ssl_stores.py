"""Stores that a listener is given while it runs; all texts were seen on Kafka 4.3.1."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate

from broker_sim.config import BrokerConfig
from broker_sim.errors import ConfigError
from broker_sim.security import Certificates
from broker_sim.security.ssl_stores import read_stores

CHAIN, KEY = "ssl.keystore.certificate.chain", "ssl.keystore.key"
TRUSTED = "ssl.truststore.certificates"
PAIR = Certificates().for_hosts(["kafka.example"])
TEXTS = {"ssl.keystore.type": "PEM", CHAIN: PAIR.chain, KEY: PAIR.key}
TRUST = {"ssl.truststore.type": "PEM", TRUSTED: PAIR.chain}
INVALID = "org.apache.kafka.common.errors.InvalidConfigurationException: "
NOT_BASE64 = "-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n"


def read(configs):
    return read_stores(BrokerConfig.from_mapping(configs))


def test_texts_are_read():
    pair, trusted = read(TEXTS | TRUST)
    assert pair == PAIR
    assert pair.matches
    assert trusted == PAIR.chain


def test_nothing_set_is_no_store():
    assert read({}) == (None, None)


@pytest.mark.parametrize(
    ("configs", "text"),
    [
        (TEXTS | {CHAIN: "x"}, "Invalid PEM keystore configs"),
        (TEXTS | {CHAIN: NOT_BASE64}, "Invalid PEM keystore configs"),
        (TEXTS | {KEY: "x"}, "Invalid PEM keystore configs"),
        (TEXTS | {KEY: PAIR.key * 2}, "Invalid PEM keystore configs"),
        (TEXTS | {"ssl.key.password": "x"}, "Invalid PEM keystore configs"),
        (
            TEXTS | {"ssl.keystore.type": "PKCS12"},
            "SSL private key can be specified only for PEM, but key store type is PKCS12.",
        ),
        (
            TEXTS | {"ssl.keystore.location": "/no"},
            "Both SSL key store location and separate private key are specified.",
        ),
        (
            TEXTS | {"ssl.keystore.password": "x"},
            ("SSL key store password cannot be specified with PEM format, only key password may be specified."),
        ),
        (
            {"ssl.keystore.type": "PEM", CHAIN: PAIR.chain},
            "SSL certificate chain is specified, but private key is not specified",
        ),
        (
            {"ssl.keystore.type": "PEM", KEY: PAIR.key},
            "SSL private key is specified, but certificate chain is not specified.",
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/no/such.pem"},
            "Failed to load PEM SSL keystore /no/such.pem",
        ),
        ({"ssl.keystore.location": "/no"}, "SSL key store is specified, but key store password is not specified."),
        ({"ssl.keystore.password": "x"}, "SSL key store is not specified, but key store password is specified."),
        (TRUST | {TRUSTED: "x"}, "No matching CERTIFICATE entries in PEM file"),
        (TRUST | {TRUSTED: NOT_BASE64}, "Invalid PEM truststore configs"),
        ({TRUSTED: PAIR.chain}, "SSL trust store certs can be specified only for PEM, but trust store type is JKS."),
        (
            TRUST | {"ssl.truststore.location": "/no"},
            "Both SSL trust store location and separate trust certificates are specified.",
        ),
        (TRUST | {"ssl.truststore.password": "x"}, "SSL trust store password cannot be specified for PEM format."),
        ({"ssl.truststore.password": "x"}, "SSL trust store is not specified, but trust store password is specified."),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/no/such.pem"},
            "Failed to load PEM SSL keystore /no/such.pem",
        ),
    ],
)
def test_refusals(configs, text):
    with pytest.raises(ConfigError) as error:
        read(configs)
    assert str(error.value) == INVALID + text


@pytest.mark.parametrize("content", ["", PAIR.chain, PAIR.key])
def test_file_without_certificate_or_key_is_refused(tmp_path, content):
    path = tmp_path / "store.pem"
    path.write_text(content)
    with pytest.raises(ConfigError) as error:
        read({"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)})
    assert str(error.value) == f"{INVALID}Failed to load PEM SSL keystore {path}"


def test_pkcs12_is_read_under_the_name_that_it_has_there(tmp_path):
    path = tmp_path / "store.p12"
    key = serialization.load_pem_private_key(PAIR.key.encode(), None)
    certificate = load_pem_x509_certificate(PAIR.chain.encode())
    encryption = serialization.BestAvailableEncryption(b"secret")
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"Broker", key, certificate, None, encryption))
    configs = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(path), "ssl.keystore.password": "secret"}
    assert read(configs)[0] == PAIR._replace(alias="broker")
    with pytest.raises(ConfigError) as error:
        read(configs | {"ssl.keystore.password": "unique"})
    assert str(error.value) == (
        f"org.apache.kafka.common.KafkaException: Failed to load SSL keystore {path} of type PKCS12"
    )
