"""Which coordinators' offsets count in random runs."""

from broker_sim.chaos.random_run.checks.coordinators import informed_coordinator, newest_coordinator
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC

GROUP = "d"
"""It is in partition 0, as all groups of random runs are."""


def leader_of(user):
    return user.cluster.leader(GROUP_METADATA_TOPIC, 0)


def test_new_coordinator_counts_once_its_followers_have_fetched_what_it_began_with(user):
    user.commit(GROUP, {0: 5})
    user.cluster.advance(1_000)
    user.commit(GROUP, {0: 6})
    new, dead = user.cluster.followers(GROUP_METADATA_TOPIC, 0)
    user.cluster.kill(dead)
    user.cluster.transfer_leadership(GROUP_METADATA_TOPIC, 0, new)
    user.cluster.advance(10)
    assert newest_coordinator(user.cluster, new) == (new, 1)
    assert informed_coordinator(user.cluster, new) is None
    assert user.fetch(GROUP, broker=new) == {("t", 0): 5}
    user.until(lambda: informed_coordinator(user.cluster, new) == (new, 1))
    assert user.fetch(GROUP, broker=new) == {("t", 0): 6}


def test_deposed_coordinator_that_has_not_heard_of_it_does_not_count(user):
    user.commit(GROUP, {0: 5})
    old = leader_of(user)
    user.cluster.advance(1_000)
    assert informed_coordinator(user.cluster, old) == (old, 0)
    assert newest_coordinator(user.cluster, old % 3 + 1) is None
    user.cluster.pause(old)
    user.until(lambda: leader_of(user) != old)
    assert newest_coordinator(user.cluster, old) is None
    assert informed_coordinator(user.cluster, old) is None
