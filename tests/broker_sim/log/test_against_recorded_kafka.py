"""The answers of a real `UnifiedLog` (see recorded/README.md), asked of `PartitionLog`."""

import gzip
import json
from pathlib import Path

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError
from broker_sim.log import PartitionLog, ProducerStateManagerConfig
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import validate_produce_records

START_MS = 1_000_000
PRODUCE_VERSION = 11
RECORDING = Path(__file__).parent / "recorded" / "unified_log_4_3_1.jsonl.gz"
SCENARIOS = [json.loads(line) for line in gzip.decompress(RECORDING.read_bytes()).splitlines()]


def listed(items):
    return f"[{', '.join(items)}]"


def java(value):
    return str(value).lower()


class LogRunner:
    """Answers the commands of a scenario; one method a command."""

    def answer(self, command):
        word, *arguments = command.split(" ")
        try:
            return getattr(self, f"do_{word}")(*arguments)
        except ApiError as error:
            return f"E {error.error_code.name}"

    def do_new(self, *configs):
        self.clock = VirtualClock(wall_start_ms=START_MS)
        values = dict(config.split("=") for config in configs)
        config = TopicConfig()
        for name, value in values.items():
            attribute = name.replace(".", "_")
            if attribute == "cleanup_policy":
                config = config.replaced(cleanup_policy=(value,))
            else:
                config = config.replaced(**{attribute: int(value) if value.isdigit() else value})
        self.log = PartitionLog(
            TopicPartition("t", 0),
            config,
            self.clock,
            producers=ProducerStateManagerConfig(transaction_verification_enabled=False),
        )
        return "ok"

    def do_time(self, wall_ms):
        self.clock.advance(int(wall_ms) - self.clock.wall_clock_ms())
        return "ok"

    def do_epoch(self, epoch):
        self.log.leader_epoch_cache.assign(int(epoch), self.log.log_end_offset)
        return "ok"

    def do_leader(self, data, epoch, origin, transaction_version):
        records = b"" if data == "-" else bytes.fromhex(data)
        if origin == "CLIENT":
            validate_produce_records(records, PRODUCE_VERSION)
        info = self.log.append_as_leader(
            records, int(epoch), origin=origin.lower(), transaction_version=int(transaction_version)
        )
        return f"{info.first_offset} {info.last_offset} {info.log_append_time_ms} {info.log_start_offset}"

    def do_follower(self, data, epoch):
        records = b"" if data == "-" else bytes.fromhex(data)
        info = self.log.append_as_follower(records, int(epoch))
        return f"{info.first_offset} {info.last_offset} {info.valid_bytes}"

    def do_read(self, offset, max_bytes, isolation, min_one_message):
        upper_bound = {
            "LOG_END": self.log.log_end_offset,
            "HIGH_WATERMARK": self.log.high_watermark,
            "TXN_COMMITTED": self.log.last_stable_offset,
        }
        data = self.log.read(
            int(offset),
            int(max_bytes),
            upper_bound_offset=upper_bound[isolation],
            min_one_message=min_one_message == "1",
        )
        return "r" + b"".join(data.records).hex()

    def do_abread(self, offset):
        log, start = self.log, int(offset)
        data = log.read(start, 1, upper_bound_offset=log.last_stable_offset)
        aborted = log.aborted_transactions(start, data.size_bytes)
        return listed(f"{txn.producer_id}/{txn.first_offset}" for txn in aborted)

    def do_hw(self, offset):
        return str(self.log.offsets.update_high_watermark(int(offset)))

    def do_start(self, offset):
        return java(self.log.offsets.maybe_increment_log_start_offset(int(offset)))

    def do_truncate(self, offset):
        return java(self.log.truncate_to(int(offset)))

    def do_truncatefully(self, offset):
        self.log.truncate_fully_and_start_at(int(offset))
        return "ok"

    def do_delete(self):
        return str(self.log.delete_old_segments())

    def do_roll(self):
        self.log.roll()
        return "ok"

    def do_ts(self, timestamp):
        found = self.log.fetch_offset_by_timestamp(int(timestamp))
        return "none" if found is None else " ".join(map(str, found))

    def do_endoffset(self, epoch):
        cache = self.log.leader_epoch_cache
        return " ".join(map(str, cache.end_offset_for(int(epoch), self.log.log_end_offset)))

    def do_segments(self):
        return listed(f"{s.base_offset}/{s.size_bytes}" for s in self.log.segments)

    def do_producers(self):
        texts = []
        for producer_id, entry in sorted(self.log.producer_state.active_producers.items()):
            txn = entry.current_txn_first_offset
            texts.append(
                f"{producer_id}={entry.producer_epoch}/{entry.last_sequence}/"
                f"{entry.last_timestamp}/{entry.coordinator_epoch}/{-1 if txn is None else txn}"
            )
        return f"{{{', '.join(texts)}}}"

    def do_state(self):
        log = self.log
        epochs = listed(f"{e.epoch}:{e.start_offset}" for e in log.leader_epoch_cache.entries)
        return (
            f"{log.log_start_offset} {log.last_stable_offset} {log.high_watermark} "
            f"{log.log_end_offset} {log.size_bytes} {epochs}"
        )


def without_size(state):
    words = state.split(" ")
    return words[:4] + words[5:]


def test_the_recording_asks_every_command():
    asked = {command.split(" ")[0] for scenario in SCENARIOS for command, _ in scenario}
    assert len(SCENARIOS) >= 50
    assert asked == {name.removeprefix("do_") for name in dir(LogRunner) if name[:3] == "do_"}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=range(len(SCENARIOS)))
def test_log_answers_as_kafka_does(scenario):
    pytest.importorskip("cramjam")
    runner = LogRunner()
    # Recompressed batches depend on the codec's implementation, and so do their sizes.
    is_recompressed = "compression.type" in scenario[0][0]
    for step, (command, expected) in enumerate(scenario):
        answer = runner.answer(command)
        if is_recompressed and command == "state":
            assert without_size(answer) == without_size(expected), f"step {step}: {command}"
        else:
            assert answer == expected, f"step {step}: {command}"
