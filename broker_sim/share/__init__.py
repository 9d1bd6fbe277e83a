"""Share groups (KIP-932), except for their membership: delivery of records, and its persistent state.

session/      share sessions: the partitions that each member fetches from this broker
partition/    share partitions: the records in flight, their acquiring members and locks
dead_letters/ dead letters of records that a group cannot process
persister/    calls of partition leaders and group coordinators to the share coordinators
coordinator/  the share coordinator, which stores the state of share partitions in `__share_group_state`
"""
