"""Stores that a listener is given while it runs, against those that it had.

The texts were seen on Kafka 4.3.1. Certificates are looked at by a handshake in memory.
"""

import os
import ssl
from contextlib import suppress

import pytest

from broker_sim.config import BrokerConfig
from broker_sim.errors import ConfigError
from broker_sim.security import Certificates
from broker_sim.security.ssl_listener import SslListener

CHAIN, KEY = "ssl.keystore.certificate.chain", "ssl.keystore.key"
TRUSTED = "ssl.truststore.certificates"
LOCATION = "ssl.keystore.location"
HOSTS = ["localhost", "127.0.0.1"]
MADE, OTHERS = Certificates(), Certificates()
FAILED = (
    "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of"
    " SSLFactory failed: {} for configuration Invalid dynamic configuration"
)
CONFIG = "org.apache.kafka.common.config.ConfigException: "
HANDSHAKE = "javax.net.ssl.SSLHandshakeException: "
NO_ANCHOR = (
    "PKIX path validation failed: java.security.cert.CertPathValidatorException: Path does not chain with"
    " any of the trust anchors"
)
EXPIRED = "PKIX path validation failed: java.security.cert.CertPathValidatorException: validity check failed"


def pair(name="broker", hosts=HOSTS, of=MADE, **options):
    return of.issue(name, hosts, **options)


def texts(pair):
    return {CHAIN: pair.chain, KEY: pair.key}


FIRST = pair()
STATIC = {"ssl.keystore.type": "PEM"} | texts(FIRST)


def listener(configs=STATIC, **options):
    config = BrokerConfig.from_mapping(configs)
    return SslListener(config, "OUTSIDE", MADE, HOSTS, has_logins=False, **options)


def own(values):
    return {f"listener.name.outside.{name}": value for name, value in values.items()}


def shown(listener):
    """Return the certificate that a client sees, as PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = listener.context.wrap_bio(to_server, to_client, server_side=True)
    client = context.wrap_bio(to_client, to_server)
    for _ in range(4):
        for end in (client, server):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return ssl.DER_cert_to_PEM_cert(client.getpeercert(binary_form=True))


def is_refused(found, values, text):
    """Check that neither is the change valid nor does it change anything."""
    before = shown(found)
    for change in (found.validate, found.reconfigure):
        with pytest.raises(ConfigError) as error:
            change(own(values))
        assert str(error.value) == FAILED.format(text)
    assert shown(found) == before


def test_new_certificate_is_shown_once_it_is_set_and_the_old_one_when_it_is_removed():
    found, new = listener(), pair()
    found.validate(own(texts(new)))
    assert shown(found) == FIRST.chain
    found.reconfigure(own(texts(new)))
    assert shown(found) == new.chain == found.trusted
    found.reconfigure({})
    assert shown(found) == FIRST.chain == found.trusted


def test_configurations_of_another_listener_and_others_change_nothing():
    found = listener()
    for name in ("listener.name.inside." + CHAIN, "listener.name.outside.max.connections"):
        found.validate({name: "x"})
        found.reconfigure({name: "x"})
    assert shown(found) == FIRST.chain


def test_made_certificate_can_be_replaced_and_comes_back():
    found = listener({})
    new = pair(of=OTHERS)
    values = {"ssl.keystore.type": "PEM"} | texts(new)
    found.reconfigure(own(values))
    assert shown(found) == new.chain == found.trusted
    found.reset()
    assert shown(found) != new.chain
    assert found.trusted == MADE.authority
    found.validate(own(values))


@pytest.mark.parametrize(
    ("new", "text"),
    [
        (
            pair("other"),
            (
                "Keystore DistinguishedName does not match:  existing={alias=kafka, DN=CN=broker},"
                " new={alias=kafka, DN=CN=other}"
            ),
        ),
        (
            pair(hosts=["localhost"]),
            (
                "Keystore SubjectAltNames do not match:  existing={alias=kafka, SAN=[[2, localhost],"
                " [7, 127.0.0.1]]}, new={alias=kafka, SAN=[[2, localhost]]}"
            ),
        ),
        (
            pair(hosts=[]),
            (
                "Keystore SubjectAltNames do not match:  existing={alias=kafka, SAN=[[2, localhost],"
                " [7, 127.0.0.1]]}, new={alias=kafka, SAN=[]}"
            ),
        ),
    ],
)
def test_certificate_for_another_host_is_rejected(new, text):
    is_refused(listener(), texts(new), CONFIG + text)


def test_names_are_in_the_order_of_java():
    found = listener()
    found.reconfigure(own(texts(pair(hosts=[*HOSTS, "more.example"]))))
    is_refused(
        found,
        texts(FIRST),
        f"{CONFIG}Keystore SubjectAltNames do not match:  existing={{alias=kafka, SAN=[[2, localhost],"
        " [7, 127.0.0.1], [2, more.example]]}, new={alias=kafka, SAN=[[2, localhost], [7, 127.0.0.1]]}",
    )


@pytest.mark.parametrize(
    ("allowed", "new"), [("ssl.allow.dn.changes", pair("other")), ("ssl.allow.san.changes", pair(hosts=[]))]
)
def test_certificate_for_another_host_is_accepted_if_allowed(allowed, new):
    found = listener(STATIC | {allowed: "true"})
    found.reconfigure(own(texts(new)))
    assert shown(found) == new.chain


def test_trust_store_is_not_added():
    is_refused(
        listener(),
        {"ssl.truststore.type": "PEM", TRUSTED: MADE.authority},
        f"{CONFIG}Cannot add SSL truststore to an existing listener for which no truststore was configured.",
    )


def test_key_of_another_certificate_is_taken_and_ends_handshakes():
    found = listener()
    found.reconfigure(own({CHAIN: pair().chain}))
    with pytest.raises(ssl.SSLError):
        shown(found)


@pytest.mark.parametrize("new", [pair(of=OTHERS), pair(expired=True)])
def test_clients_alone_are_not_asked_whether_they_trust(new):
    found = listener()
    found.reconfigure(own(texts(new)))
    assert shown(found) == new.chain


@pytest.fixture
def between_brokers():
    trust = {"ssl.truststore.type": "PEM", TRUSTED: MADE.authority}
    return listener(STATIC | trust, is_inter_broker=True)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (texts(pair(of=OTHERS)), NO_ANCHOR),
        ({TRUSTED: OTHERS.authority}, NO_ANCHOR),
        (texts(pair(expired=True)), EXPIRED),
        ({CHAIN: pair().chain}, "Invalid CertificateVerify signature"),
    ],
)
def test_brokers_must_trust_each_other(between_brokers, values, text):
    is_refused(between_brokers, values, HANDSHAKE + text)


def test_authority_of_brokers_changes_in_two_steps(between_brokers):
    both = {TRUSTED: MADE.authority + OTHERS.authority}
    new = pair(of=OTHERS)
    between_brokers.reconfigure(own(both))
    between_brokers.reconfigure(own(both | texts(new)))
    assert shown(between_brokers) == new.chain


def test_changed_file_is_read_again_when_anything_is_set(tmp_path):
    path = tmp_path / "store.pem"

    def write(text, changed_s):
        path.write_text(text)
        os.utime(path, (changed_s, changed_s))

    write(FIRST.key + FIRST.chain, 1)
    found = listener({"ssl.keystore.type": "PEM", LOCATION: str(path)})
    new = pair()
    write(new.key + new.chain, 2)
    found.validate({})
    assert shown(found) == FIRST.chain
    found.reconfigure({})
    assert shown(found) == new.chain
    write("x", 3)
    with pytest.raises(ConfigError):
        found.reconfigure({})
    assert shown(found) == new.chain


def test_nothing_is_compared_when_a_broker_starts():
    found, new = listener(), pair("other")
    found.reconfigure(own(texts(new)), is_start=True)
    assert shown(found) == new.chain
