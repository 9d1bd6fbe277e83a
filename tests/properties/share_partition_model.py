"""What a share partition has to do, record by record: the model that random runs compare it with."""

from broker_sim.share.coordinator.state_batches import combine_state_batches
from tests.broker_sim.share.partition.conftest import Bench, Coordinator

LOCK_MS = 30_000
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = "AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVED"
DONE = (ACKNOWLEDGED, ARCHIVED)
STATE_OF = {0: ARCHIVED, 1: ACKNOWLEDGED, 2: AVAILABLE, 3: ARCHIVED}
NAME_OF = {0: AVAILABLE, 2: ACKNOWLEDGED, 4: ARCHIVED}
RENEW = 4


class Record:
    """What the model knows of one record."""

    def __init__(self, state=AVAILABLE, deliveries=0, *, is_gap=False):
        self.state = state
        self.deliveries = deliveries
        self.is_gap = is_gap
        """Whether a new leader knows nothing of it, but of records behind it."""
        self.member = ""
        self.lock_ends_ms = None

    def leave(self, state, limit):
        """Take the record from its member; after so many deliveries it is not available again."""
        if state == AVAILABLE and self.deliveries >= limit:
            state = ARCHIVED
        self.state, self.member, self.lock_ends_ms = state, "", None


class KeepingCoordinator(Coordinator):
    """Keeps the state for the next leader, as the share coordinator does."""

    def __init__(self):
        super().__init__()
        self.start_offset = 0
        self.kept = ()

    def write_state(self, key, state, on_done):
        def keep_and_tell(outcome):
            if not outcome.error_code:
                self.start_offset = state.start_offset
                self.kept = combine_state_batches(self.kept, state.state_batches, state.start_offset)
            on_done(outcome)

        super().write_state(key, state, keep_and_tell)


def keeping_bench(configs, coordinator):
    """Return a bench whose share partition begins with what the coordinator keeps."""
    bench = Bench()
    bench.configs.update(configs)
    bench.coordinator = coordinator
    bench.partition = bench._new_partition()
    return bench.open(*map(tuple, coordinator.kept), start_offset=coordinator.start_offset)
