# Made by tools/update_schemas.py from kafka-share-coordinator 4.3.1; do not edit.
from broker_sim.protocol.message import Message, Struct

class ShareSnapshotKey(Message):
    group_id: str
    topic_id: bytes
    partition: int
    def __init__(self, group_id: str = ..., topic_id: bytes = ..., partition: int = ...) -> None: ...

class ShareSnapshotValue(Message):
    class StateBatch(Struct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self, first_offset: int = ..., last_offset: int = ..., delivery_state: int = ..., delivery_count: int = ...
        ) -> None: ...

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    state_batches: list[ShareSnapshotValue.StateBatch]
    def __init__(
        self,
        snapshot_epoch: int = ...,
        state_epoch: int = ...,
        leader_epoch: int = ...,
        start_offset: int = ...,
        delivery_complete_count: int = ...,
        create_timestamp: int = ...,
        write_timestamp: int = ...,
        state_batches: list[ShareSnapshotValue.StateBatch] = ...,
    ) -> None: ...

class ShareUpdateKey(Message):
    group_id: str
    topic_id: bytes
    partition: int
    def __init__(self, group_id: str = ..., topic_id: bytes = ..., partition: int = ...) -> None: ...

class ShareUpdateValue(Message):
    class StateBatch(Struct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self, first_offset: int = ..., last_offset: int = ..., delivery_state: int = ..., delivery_count: int = ...
        ) -> None: ...

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: list[ShareUpdateValue.StateBatch]
    def __init__(
        self,
        snapshot_epoch: int = ...,
        leader_epoch: int = ...,
        start_offset: int = ...,
        delivery_complete_count: int = ...,
        state_batches: list[ShareUpdateValue.StateBatch] = ...,
    ) -> None: ...
