"""Claims about UpdateFeatures, with the answers of Kafka 4.3.1."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.cluster.update_features import handle_update_features
from broker_sim.protocol import messages

TRANSACTION_VERSION = "transaction.version"
UNKNOWN, UPGRADE, SAFE, UNSAFE = range(4)
FAILED = "The update failed for all features since the following feature had an error: "
NEEDS_TYPE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)


def update(broker, *updates, version=2, **fields):
    """Return the response to updates (name, level, type)."""
    key = messages.UpdateFeaturesRequest.FeatureUpdateKey
    request = messages.UpdateFeaturesRequest(
        feature_updates=[
            key(name, level, upgrade_type=kind) if version else key(name, level) for name, level, kind in updates
        ],
        **fields,
    )
    return broker.ask(handle_update_features, request, version)


def level(broker):
    return broker.image.features.get(TRANSACTION_VERSION, 0)


def test_feature_level_can_be_downgraded_and_upgraded(broker):
    for wanted, kind in ((1, SAFE), (0, UNSAFE), (0, SAFE), (2, UPGRADE), (2, UPGRADE)):
        response = update(broker, (TRANSACTION_VERSION, wanted, kind))
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert response.results == []
        assert level(broker) == wanted
    assert TRANSACTION_VERSION in broker.image.features
    update(broker, (TRANSACTION_VERSION, 0, SAFE))
    assert TRANSACTION_VERSION not in broker.image.features


@pytest.mark.parametrize("version", [0, 1])
def test_older_versions_return_a_result_for_each_feature(broker, version):
    response = update(broker, (TRANSACTION_VERSION, 2, UPGRADE), version=version)
    told = [(one.feature, one.error_code, one.error_message) for one in response.results]
    assert told == [(TRANSACTION_VERSION, ErrorCode.NONE, "NONE")]


def test_validation_changes_nothing(broker):
    response = update(broker, (TRANSACTION_VERSION, 1, SAFE), validate_only=True)
    assert response.error_code == ErrorCode.NONE
    assert level(broker) == 2


@pytest.mark.parametrize(
    ("name", "wanted", "kind", "reason"),
    [
        (TRANSACTION_VERSION, 1, UPGRADE, NEEDS_TYPE),
        ("kraft.version", 2, UPGRADE, "Local controller 3000 only supports versions 0-1"),
        (TRANSACTION_VERSION, 3, UPGRADE, "Local controller 3000 only supports versions 0-2"),
        (TRANSACTION_VERSION, -1, SAFE, "A feature version cannot be less than 0."),
        (TRANSACTION_VERSION, 1, UNKNOWN, "The controller does not support the given upgrade type."),
        (TRANSACTION_VERSION, 1, 9, "The controller does not support the given upgrade type."),
        ("foo", 1, UPGRADE, "Local controller 3000 does not support this feature."),
        ("metadata.version", 34, UPGRADE, "Local controller 3000 only supports versions 7-33"),
    ],
)
def test_invalid_update_is_refused_as_by_kafka(broker, name, wanted, kind, reason):
    response = update(broker, (name, wanted, kind))
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    expected = f"{FAILED}Invalid update version {wanted} for feature {name}. {reason}"
    assert response.error_message == expected
    assert level(broker) == 2


def test_newer_level_is_no_downgrade(broker):
    update(broker, (TRANSACTION_VERSION, 1, SAFE))
    response = update(broker, (TRANSACTION_VERSION, 2, SAFE))
    assert response.error_message.endswith("Can't downgrade to a newer version.")
    assert level(broker) == 1


def test_metadata_version_does_not_go_down(broker):
    response = update(broker, ("metadata.version", 29, SAFE))
    assert response.error_message == (
        f"{FAILED}Unsupported metadata.version downgrade from 33 to 29. Refusing to perform the"
        " requested downgrade because it might delete metadata information."
    )


def test_eligible_leader_replicas_are_turned_off(broker):
    response = update(broker, ("eligible.leader.replicas.version", 0, SAFE))
    assert response.error_code == ErrorCode.NONE
    assert "eligible.leader.replicas.version" not in broker.image.features


def test_kraft_version_goes_up_and_never_down(broker):
    assert "kraft.version" not in broker.image.features
    for level in (0, 1, 1):
        assert update(broker, ("kraft.version", level, UPGRADE)).error_code == ErrorCode.NONE
    for kind in (SAFE, UNSAFE):
        response = update(broker, ("kraft.version", 0, kind))
        assert response.error_message == (
            f"{FAILED}Invalid update version 0 for feature kraft.version. Can't downgrade the version of this feature."
        )
    assert broker.image.features["kraft.version"] == 1


def test_one_failure_fails_all(broker):
    updates = [(TRANSACTION_VERSION, 1, SAFE), ("foo", 1, UPGRADE)]
    for version in (1, 2):
        response = update(broker, *updates, version=version)
        assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert response.results == []
    assert level(broker) == 2


def test_last_update_of_a_feature_counts(broker):
    updates = [(TRANSACTION_VERSION, 1, UPGRADE), (TRANSACTION_VERSION, 2, UPGRADE)]
    assert update(broker, *updates).error_code == ErrorCode.NONE
    assert level(broker) == 2


def test_request_without_updates_succeeds(broker):
    assert update(broker).error_code == ErrorCode.NONE


def test_timeout_of_zero_updates_no_feature(broker):
    response = update(broker, (TRANSACTION_VERSION, 1, SAFE), timeout_ms=0)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert level(broker) == 2
