"""Claims about changes of the controllers; answers as a running Kafka 4.4.0 with one controller gives them."""

import pytest

from broker_sim import VirtualCluster
from broker_sim.controller import CONTROLLER_ID
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.uuids import uuid_text

Add, Remove = messages.AddRaftVoterRequest, messages.RemoveRaftVoterRequest
VOTER = {"cluster_id": None, "voter_id": 2, "voter_directory_id": bytes(range(16))}
LISTENERS = [Add.Listener("CONTROLLER", "127.0.0.1", 19_999)]
NO_VOTER = "voter request didn't include a valid voter"
WITHOUT = "Add voter request didn't include the endpoint (Endpoints(endpoints={{{}}})) for the default listener "
DEFAULT = "ListenerName(CONTROLLER)"


@pytest.fixture(scope="module")
def cluster():
    return VirtualCluster(1, seed=2, as_version="4.4")


@pytest.fixture(scope="module")
def upgraded():
    """A cluster of `kraft.version` 1, whose id is no UUID."""
    cluster = VirtualCluster(1, seed=2, as_version="4.4", cluster_id="my-cluster")
    key = messages.UpdateFeaturesRequest.FeatureUpdateKey("kraft.version", 1, upgrade_type=1)
    assert ask(cluster, messages.UpdateFeaturesRequest(1000, [key]), 1)[0] == ErrorCode.NONE
    return cluster


def ask(cluster, request, version=0):
    pending = cluster.client().send(1, request, version)
    cluster.run_until(lambda: pending.done)
    return ErrorCode(pending.response.error_code), pending.response.error_message


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({}, "UNSUPPORTED_VERSION", "Cluster doesn't support adding voter because the kraft.version feature is 0"),
        ({"voter_id": -1}, "INVALID_REQUEST", f"Add {NO_VOTER}"),
        ({"voter_directory_id": bytes(16)}, "INVALID_REQUEST", f"Add {NO_VOTER}"),
        ({"listeners": []}, "INVALID_REQUEST", WITHOUT.format("") + DEFAULT),
        (
            {"listeners": [Add.Listener("OTHER", "127.0.0.1", 19_999)]},
            "INVALID_REQUEST",
            WITHOUT.format("ListenerName(OTHER)=127.0.0.1/<unresolved>:19999") + DEFAULT,
        ),
    ],
)
def test_no_voter_is_added_and_the_reason_is_kafkas(cluster, fields, code, text):
    request = Add(**{**VOTER, "listeners": LISTENERS, **fields})
    assert ask(cluster, request) == (ErrorCode[code], text)


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({}, "UNSUPPORTED_VERSION", "Cluster doesn't support removing voter because the kraft.version feature is 0"),
        ({"voter_id": -1}, "INVALID_REQUEST", f"Remove {NO_VOTER}"),
        ({"voter_directory_id": bytes(16)}, "INVALID_REQUEST", f"Remove {NO_VOTER}"),
    ],
)
def test_no_voter_is_removed_and_the_reason_is_kafkas(cluster, fields, code, text):
    assert ask(cluster, Remove(**{**VOTER, **fields})) == (
        ErrorCode[code],
        text,
    )


def test_cluster_id_of_another_cluster_is_the_first_reason(cluster):
    text = f'The given id "wrong" doesn\'t match the cluster id "{cluster.nodes.cluster_id}"'
    for request in (Add("wrong", voter_id=-1), Remove("wrong", voter_id=-1)):
        assert ask(cluster, request) == (ErrorCode.INCONSISTENT_CLUSTER_ID, text)
    for request in (Add(cluster.nodes.cluster_id, voter_id=-1), Remove(cluster.nodes.cluster_id, voter_id=-1)):
        assert ask(cluster, request)[0] == ErrorCode.INVALID_REQUEST


def test_only_controller_stays_registered_and_others_never_were(cluster):
    refused = ask(cluster, messages.UnregisterControllerRequest(CONTROLLER_ID))
    assert refused == (ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    code, text = ask(cluster, messages.UnregisterControllerRequest(9))
    assert (code, text) == (ErrorCode.CONTROLLER_ID_NOT_REGISTERED, "Controller ID 9 is not currently registered.")


def test_upgraded_quorum_knows_its_voter_and_cannot_reach_another(upgraded):
    request = messages.DescribeQuorumRequest
    topic = request.TopicData("__cluster_metadata", [request.PartitionData(0)])
    pending = upgraded.client().send(1, request([topic]), 2)
    upgraded.run_until(lambda: pending.done)
    (voter,) = pending.response.topics[0].partitions[0].current_voters
    voters = f"[ReplicaKey(id=3000, directoryId={uuid_text(voter.replica_directory_id)})]"
    other = "ReplicaKey(id=2, directoryId=AAECAwQFBgcICQoLDA0ODw)"
    added = Add(**VOTER, listeners=LISTENERS)
    text = f"New voter {other} is not ready to receive requests"
    assert ask(upgraded, added) == (ErrorCode.REQUEST_TIMED_OUT, text)
    text = f"Cannot remove voter {other} from the set of voters {voters}"
    assert ask(upgraded, Remove(**VOTER)) == (ErrorCode.VOTER_NOT_FOUND, text)
    only = {"voter_id": CONTROLLER_ID, "voter_directory_id": voter.replica_directory_id}
    text = f"Cannot remove voter {voters[1:-1]} from the set of voters {voters}"
    assert ask(upgraded, Remove(None, **only)) == (ErrorCode.VOTER_NOT_FOUND, text)
    text = f"The voter id for {voters[1:-1]} is already part of the set of voters {voters}."
    assert ask(upgraded, Add(None, **only, listeners=LISTENERS)) == (ErrorCode.DUPLICATE_VOTER, text)
