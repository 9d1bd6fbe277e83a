"""Upgrades of a cluster that an older Kafka has formatted; the errors are those of Kafka 4.3.1."""

import pytest

from broker_sim.controller import (
    DEFAULT_FEATURES,
    AlterOp,
    ConfigAlteration,
    ConfigResource,
    ConfigResourceType,
    FeatureUpdate,
    UpgradeType,
    initial_features,
    supported_features,
)
from broker_sim.errors import ApiError
from broker_sim.metadata.feature_names import ELIGIBLE_LEADER_REPLICAS_VERSION
from broker_sim.protocol.release import find_release

ALL_FAILED = "The update failed for all features since the following feature had an error: "


def update(cluster, kind=UpgradeType.UPGRADE, /, **levels):
    cluster.controller.update_features(
        [FeatureUpdate(f"{name}.version", level, kind) for name, level in levels.items()]
    )


def upgrade_of_elr():
    return FeatureUpdate(ELIGIBLE_LEADER_REPLICAS_VERSION, 1, UpgradeType.UPGRADE)


def downgrade_of_elr():
    return FeatureUpdate(ELIGIBLE_LEADER_REPLICAS_VERSION, 0, UpgradeType.SAFE_DOWNGRADE)


def test_all_features_go_up_at_once_whatever_their_order(make_cluster):
    for order in (1, -1):
        cluster = make_cluster(features=initial_features(find_release("3.9")))
        levels = list(DEFAULT_FEATURES.items())[::order]
        cluster.controller.update_features([FeatureUpdate(name, level, UpgradeType.UPGRADE) for name, level in levels])
        assert cluster.image.features == DEFAULT_FEATURES


@pytest.mark.parametrize(("metadata_version", "is_refused"), [(22, True), (23, False)])
def test_elr_needs_metadata_that_has_it(make_cluster, metadata_version, is_refused):
    cluster = make_cluster(features=initial_features(find_release("3.9")))
    update(cluster, metadata=metadata_version)
    if not is_refused:
        cluster.controller.update_features([upgrade_of_elr()])
        assert cluster.image.features[ELIGIBLE_LEADER_REPLICAS_VERSION] == 1
        return
    with pytest.raises(ApiError) as refused:
        cluster.controller.update_features([upgrade_of_elr()])
    assert refused.value.error_message == (
        f"{ALL_FAILED}Invalid update version 1 for feature {ELIGIBLE_LEADER_REPLICAS_VERSION}. "
        f"{ELIGIBLE_LEADER_REPLICAS_VERSION} could not be set to 1 because it depends on metadata.version level 23"
    )
    assert cluster.image.features == {"metadata.version": 22}


@pytest.mark.parametrize(
    ("before", "after", "is_refused"),
    [(29, 24, False), (29, 23, False), (29, 22, True), (16, 15, False), (15, 14, True)],
)
def test_metadata_goes_down_only_where_it_has_not_changed(make_cluster, before, after, is_refused):
    cluster = make_cluster(features={"metadata.version": before})
    if is_refused:
        for upgrade_type, reason in [
            (
                UpgradeType.SAFE_DOWNGRADE,
                "Refusing to perform the requested downgrade because it might delete metadata",
            ),
            (UpgradeType.UNSAFE_DOWNGRADE, r"Unsafe metadata downgrade is not supported in this version\.$"),
        ]:
            with pytest.raises(ApiError, match=reason):
                update(cluster, upgrade_type, metadata=after)
        assert cluster.image.features == {"metadata.version": before}
    else:
        update(cluster, UpgradeType.SAFE_DOWNGRADE, metadata=after)
        assert cluster.image.features == {"metadata.version": after}


def test_brokers_of_an_older_release_do_not_go_beyond_it(make_cluster):
    cluster = make_cluster(
        features=initial_features(find_release("4.0")), supported_features=supported_features(find_release("4.1"))
    )
    update(cluster, metadata=27)
    with pytest.raises(ApiError, match="only supports versions 7-27"):
        update(cluster, metadata=28)
    with pytest.raises(ApiError, match="does not support this feature"):
        update(cluster, streams=1)


def test_elr_that_is_turned_on_has_one_minimum_and_is_kept_from_then_on(make_cluster):
    cluster = make_cluster({"min.insync.replicas": 2}, elr=False).start(1, 2, 3)
    of_broker = ConfigResource(ConfigResourceType.BROKER, "1")
    changes = [("min.insync.replicas", "3"), ("log.cleaner.threads", "2")]
    cluster.controller.incremental_alter_configs(
        [(of_broker, [ConfigAlteration(name, AlterOp.SET, value) for name, value in changes])]
    )
    cluster.create("t", [1, 2, 3])
    cluster.kill(3)
    assert cluster.image.broker_configs.get("") is None
    assert cluster.partition("t").elr == ()
    cluster.controller.update_features([upgrade_of_elr()])
    assert cluster.image.broker_configs == {"": {"min.insync.replicas": "2"}, "1": {"log.cleaner.threads": "2"}}
    cluster.kill(2, 3)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), (2,))


def test_elr_that_is_turned_off_goes_with_the_next_change_of_its_partition(make_cluster):
    """As in Kafka: the update writes the level only, and keeps the minimum of the cluster."""
    cluster = make_cluster({"min.insync.replicas": 2}).start(1, 2, 3)
    cluster.create("t", [1, 2, 3])
    cluster.kill(2, 3)
    before = cluster.partition("t")
    assert (before.isr, before.elr) == ((1,), (3,))
    minimum = cluster.image.broker_configs[""]
    cluster.controller.update_features([downgrade_of_elr()])
    assert cluster.partition("t") == before
    assert cluster.image.broker_configs[""] == minimum
    cluster.kill(1)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), ())
    cluster.start(1)
    assert cluster.partition("t").leader == 1


def test_isr_that_became_empty_stays_so_when_elr_is_turned_off(make_cluster):
    cluster = make_cluster({"min.insync.replicas": 2}).start(1, 2)
    cluster.create("t", [1, 2])
    cluster.kill(1, 2)
    assert (cluster.partition("t").isr, cluster.partition("t").has_leader) == ((), False)
    cluster.controller.update_features([downgrade_of_elr()])
    cluster.start(1, 2)
    assert cluster.partition("t").has_leader
