"""Share groups (KIP-932), apart from their members: who has which records, and where that is kept.

session/      which partitions a member fetches from this broker
partition/    which records of a partition are in flight, with whom and for how long
dead_letters/ what is written of records that a group cannot process
persister/    the way from there, and from the groups, to the share coordinators
coordinator/  the share coordinator, which keeps the state of share partitions in `__share_group_state`
"""
