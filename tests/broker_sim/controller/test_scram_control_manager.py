"""What the controller keeps of passwords. The exchanges are those of RFC 5802 and RFC 7677."""

import base64
import hashlib
import hmac

import pytest

from broker_sim.controller import ScramDeletion, ScramUpsertion
from broker_sim.errors import ErrorCode

SHA_256, SHA_512 = 1, 2
DIGESTS = {SHA_256: "sha256", SHA_512: "sha512"}
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
AUTH_MESSAGE = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCE}"
PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SERVER_SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def upsertion(user="user", mechanism=SHA_256, iterations=4096, password=b"pencil"):
    salted = hashlib.pbkdf2_hmac(DIGESTS[mechanism], password, SALT, iterations)
    return ScramUpsertion(user, mechanism, iterations, SALT, salted)


def xor(left, right):
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def test_client_of_the_rfc_logs_in_with_the_stored_credential(cluster):
    cluster.controller.alter_user_scram_credentials([], [upsertion()])
    kept = cluster.image.scram["user"][SHA_256]
    client_signature = hmac.digest(kept.stored_key, AUTH_MESSAGE.encode(), "sha256")
    client_key = xor(PROOF, client_signature)
    assert hashlib.sha256(client_key).digest() == kept.stored_key
    assert hmac.digest(kept.server_key, AUTH_MESSAGE.encode(), "sha256") == SERVER_SIGNATURE
    assert (kept.salt, kept.iterations) == (SALT, 4096)


def test_each_mechanism_has_its_own_hash_and_its_own_credential(cluster):
    changes = [upsertion(mechanism=SHA_512, iterations=8192)]
    cluster.controller.alter_user_scram_credentials([], changes)
    cluster.controller.alter_user_scram_credentials([], [upsertion()])
    kept = cluster.image.scram["user"]
    assert {mechanism: each.iterations for mechanism, each in kept.items()} == {2: 8192, 1: 4096}
    salted = changes[0].salted_password
    client_key = hmac.digest(salted, b"Client Key", "sha512")
    assert kept[SHA_512].stored_key == hashlib.sha512(client_key).digest()
    assert kept[SHA_512].server_key == hmac.digest(salted, b"Server Key", "sha512")


def test_no_text_has_keys_or_salts(cluster):
    change = upsertion()
    cluster.controller.alter_user_scram_credentials([], [change])
    text = f"{change!r} {cluster.image!r}"
    kept = cluster.image.scram["user"][SHA_256]
    for secret in (SALT, change.salted_password, kept.stored_key, kept.server_key):
        assert repr(secret) not in text
    assert "iterations=4096" in text


def test_all_changes_of_a_request_make_one_image(cluster):
    cluster.controller.alter_user_scram_credentials([], [upsertion("a"), upsertion("b")])
    published = len(cluster.images)
    results = cluster.controller.alter_user_scram_credentials(
        [ScramDeletion("a", SHA_256), ScramDeletion("none", SHA_256)], [upsertion("c"), upsertion("b", iterations=5000)]
    )
    assert results.deleted == ("a",)
    assert results.upserted == ("c", "b")
    assert results.refused["none"].error_code is ErrorCode.RESOURCE_NOT_FOUND
    assert len(cluster.images) == published + 1
    assert sorted(cluster.image.scram) == ["b", "c"]
    assert cluster.image.scram["b"][SHA_256].iterations == 5000


def test_refused_changes_make_no_image(cluster):
    published = len(cluster.images)
    cluster.controller.alter_user_scram_credentials([], [upsertion(""), upsertion(iterations=1)])
    assert len(cluster.images) == published


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
def test_user_whose_last_credential_is_deleted_is_gone(cluster, mechanism):
    for each in (SHA_256, SHA_512):
        cluster.controller.alter_user_scram_credentials([], [upsertion(mechanism=each)])
    cluster.controller.alter_user_scram_credentials([ScramDeletion("user", mechanism)], [])
    (left,) = cluster.image.scram["user"]
    assert left != mechanism
    cluster.controller.alter_user_scram_credentials([ScramDeletion("user", left)], [])
    assert cluster.image.scram == {}


def test_reset_forgets_all_users(cluster):
    cluster.controller.alter_user_scram_credentials([], [upsertion("a"), upsertion("b")])
    cluster.controller.reset()
    assert cluster.image.scram == {}
