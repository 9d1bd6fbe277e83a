"""A share coordinator compared with a model, with snapshots, pruned logs and reloads; the seed is in the test id."""

from random import Random

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.share.share_state import StateBatch

SEEDS = 12
STEPS = 90
CONFIGS = {
    "share_coordinator_snapshot_update_records_per_snapshot": 3,
    "share_coordinator_cold_partition_snapshot_interval_ms": 1_000,
}
NONE = ErrorCode.NONE


class Model:
    """The expected state of one share partition."""

    def __init__(self):
        self.exists = False
        self.highest_state_epoch = self.highest_leader_epoch = None

    def begin(self, state_epoch, start_offset):
        self.exists = True
        self.state_epoch, self.leader_epoch = state_epoch, 0
        self.start_offset = start_offset
        self.complete = -1 if start_offset == -1 else 0
        self.deliveries = {}
        self.highest_state_epoch = max(self.highest_state_epoch or state_epoch, state_epoch)
        self.highest_leader_epoch = max(self.highest_leader_epoch or 0, 0)

    def is_fenced(self, *, state=-1, leader=-1):
        if leader != -1 and self.exists and self.highest_leader_epoch > leader:
            return ErrorCode.FENCED_LEADER_EPOCH
        if state != -1 and self.exists and self.highest_state_epoch > state:
            return ErrorCode.FENCED_STATE_EPOCH
        return NONE

    def write(self, batches, start_offset, complete, *, goes_back):
        if not goes_back:
            if start_offset <= self.start_offset:
                complete = max(complete if start_offset == self.start_offset else -1, self.complete)
            start_offset = max(start_offset, self.start_offset)
        if start_offset != -1:
            self.start_offset = start_offset
        self.complete = complete
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                delivery = (batch.delivery_count, batch.delivery_state)
                self.deliveries[offset] = max(self.deliveries.get(offset, delivery), delivery)
        self.deliveries = {n: each for n, each in self.deliveries.items() if n >= self.start_offset}

    def read(self, leader_epoch):
        if leader_epoch not in {-1, self.highest_leader_epoch}:
            self.leader_epoch = self.highest_leader_epoch = leader_epoch


class Run:
    """Random operations on two share partitions; each response is compared with the model."""

    def __init__(self, bench, key, seed):
        self.bench = bench
        self.rng = Random(seed)
        self.models = {each: Model() for each in (key, key._replace(partition=1))}
        self.rejects_negative = bench.release.is_at_least("4.4")

    def step(self):
        key = self.rng.choice(list(self.models))
        model = self.models[key]
        operations = [self.initialize, self.delete, *[self.read] * 3, *[self.write] * 8]
        self.rng.choice([*operations, self.upkeep, self.upkeep])(key, model)

    def negative(self, *epochs):
        return ErrorCode.INVALID_REQUEST if self.rejects_negative and min(epochs) < 0 else NONE

    def initialize(self, key, model):
        epoch, start = self.rng.choice((0, 1, 2, 3, -1)), self.rng.choice((-1, 0, 10))
        expected = self.negative(epoch) or model.is_fenced(state=epoch)
        assert self.bench.initialize(epoch, start, key).error_code == expected
        if not expected:
            model.begin(epoch, start)

    def delete(self, key, model):
        assert self.bench.delete(key).error_code == NONE
        model.__init__()

    def read(self, key, model):
        epoch = self.rng.choice((0, 1, 2, 3, -1))
        expected = ErrorCode.INVALID_REQUEST
        if model.exists:
            expected = self.negative(epoch) or model.is_fenced(leader=epoch)
        outcome = self.bench.read(epoch, key)
        assert outcome.error_code == expected
        if expected:
            return
        model.read(epoch)
        assert (outcome.state_epoch, outcome.start_offset) == (model.state_epoch, model.start_offset)
        assert deliveries_of(outcome.state_batches) == model.deliveries

    def write(self, key, model):
        rng = self.rng
        state, leader = rng.choice((1, 2, 3, -1, -1)), rng.choice((0, 1, 2, 3, -1, -1))
        start, complete = rng.choice((-1, -1, 0, 5, 10, 20)), rng.randrange(9)
        batches = []
        for _ in range(rng.randrange(3)):
            first = rng.randrange(40)
            last = first + rng.randrange(9)
            batches.append(StateBatch(first, last, rng.choice((0, 2, 4)), rng.randrange(1, 5)))
        expected = ErrorCode.INVALID_REQUEST
        if model.exists:
            expected = self.negative(state, leader) or model.is_fenced(state=state, leader=leader)
        outcome = self.bench.write(
            *batches, key=key, state_epoch=state, leader_epoch=leader, start_offset=start, complete=complete
        )
        assert outcome.error_code == expected
        if not expected:
            model.write(batches, start, complete, goes_back=not self.rejects_negative)

    def upkeep(self, key, model):
        """Write snapshots of cold share partitions, prune the log and, half of the time, load it again."""
        self.bench.clock.advance(self.rng.choice((1, 500, 1_000)))
        self.bench.coordinator.snapshot_cold_partitions()
        self.bench.coordinator.prune_records()
        if self.rng.random() < 0.5:
            before = self.bench.shard
            self.bench.coordinator = self.bench.new_coordinator()
            assert self.bench.shard.states == before.states
            self.forget_epochs()
        self.summarize()

    def forget_epochs(self):
        """Lower the model's highest epochs to the loaded ones: records with the highest epochs may have been pruned."""
        shard = self.bench.shard
        for key, model in self.models.items():
            if model.exists:
                leader, state = shard.leader_epochs[key], shard.state_epochs[key]
                assert model.leader_epoch <= leader <= model.highest_leader_epoch
                assert model.state_epoch <= state <= model.highest_state_epoch
                model.highest_leader_epoch, model.highest_state_epoch = leader, state

    def summarize(self):
        for key, model in self.models.items():
            outcome = self.bench.summary(key)
            assert outcome.error_code == NONE
            if model.exists:
                assert outcome[2:] == (model.state_epoch, model.leader_epoch, model.start_offset, model.complete)
            else:
                assert outcome[2:] == (0, 0, -1, -1)


def deliveries_of(batches):
    """Return delivery count and state by offset."""
    return {
        offset: (batch.delivery_count, batch.delivery_state)
        for batch in batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_coordinator_matches_the_model(make_bench, key, seed):
    run = Run(make_bench("4.3" if seed % 2 else "4.4", **CONFIGS), key, seed)
    for _ in range(STEPS):
        run.step()
    run.upkeep(key, None)
    assert run.bench.log.deleted
