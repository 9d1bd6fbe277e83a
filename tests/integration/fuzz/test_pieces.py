"""The parts of fuzzing that need no cluster."""

import asyncio
import json

import pytest
from broker_sim_integration.cli import main
from broker_sim_integration.fuzz.areas.all_areas import AREAS
from broker_sim_integration.fuzz.areas.area import WAVE
from broker_sim_integration.fuzz.command import chance_line
from broker_sim_integration.fuzz.difference import (
    Difference,
    KnownFuzzDifference,
    differences,
    read_known,
    read_known_chances,
)
from broker_sim_integration.fuzz.fuzzer import Finding
from broker_sim_integration.fuzz.gate import Gate
from broker_sim_integration.fuzz.references import References
from broker_sim_integration.fuzz.sequence import Fault, Request, Sequence
from click.testing import CliRunner

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.codec import encode


@pytest.mark.parametrize("name", AREAS)
def test_a_seed_gives_the_same_sequence_which_json_keeps_and_the_codec_takes(name):
    references = References("play", {"first": 1, "second": 2, "third": 3}.get)
    for seed in range(20):
        sequence = AREAS[name].draw(seed)
        assert AREAS[name].draw(seed) == sequence
        assert Sequence.from_json(json.loads(json.dumps(sequence.to_json()))) == sequence
        for action in sequence.actions:
            if isinstance(action, Request):
                message_class = getattr(messages, f"{action.api}Request")
                assert encode(references.message(message_class, action.body), action.version)


def test_tasks_and_epoch_of_a_member_are_those_of_the_last_response():
    references = References("play", {}.get)
    answer = messages.StreamsGroupHeartbeatResponse
    given = answer(member_epoch=3, active_tasks=[answer.TaskIds("0", [1])])
    references.learn("a", given)
    references.learn("a", answer(member_epoch=4))  # they are as before
    references.learn("a", answer(error_code=ErrorCode.FENCED_MEMBER_EPOCH))
    request = messages.StreamsGroupHeartbeatRequest
    body = {"member_epoch": "<a.member_epoch>", "active_tasks": "<a.active_tasks>"}
    made = references.message(request, body | {"standby_tasks": "<a.standby_tasks>"})
    assert made.member_epoch == 4
    assert made.active_tasks == [request.TaskIds("0", [1])]
    assert made.standby_tasks == []


def _faults(sequence):
    return [action for action in sequence.actions if isinstance(action, Fault)]


def test_sequences_of_a_wave_have_the_same_faults_each_of_which_ends():
    area = AREAS["replication"]
    wave = [_faults(area.draw(seed)) for seed in range(WAVE)]
    assert all(faults == wave[0] for faults in wave)
    for down, back in zip(wave[0][::2], wave[0][1::2], strict=True):
        assert (down.broker, back.verb) == (back.broker, {"pause": "resume"}.get(down.verb, "start"))


ASK = Request("a", "first", "Metadata", 12, {})


def test_a_field_differs_only_if_it_is_equal_in_no_pair_of_plays():
    sequence = Sequence("topics", 1, (), (ASK,))
    found = differences(sequence, [[{"x": 1, "y": 1}], [{"x": 2, "y": 2}]], [[{"x": 9, "y": 3}], [{"x": 2, "y": 3}]])
    assert found == [Difference("topics", 0, "Metadata 12", "y", 1, 3)]


def test_a_known_difference_hides_no_other():
    one = Difference("topics", 0, "Metadata 12", "topics.0.name", "a", "b")
    assert KnownFuzzDifference("topics", "Metadata *", "topics.*.name", "b", "why").fits(one)
    assert not KnownFuzzDifference("topics", "Metadata *", "topics.*.name", "c", "why").fits(one)
    assert not KnownFuzzDifference("log", "Metadata *", "topics.*.name", "b", "why").fits(one)


def test_the_document_has_rows_for_areas_that_exist():
    for rows in (read_known(), read_known_chances()):
        assert rows
        assert {row.area for row in rows} <= AREAS.keys()


def test_random_difference_is_shown_with_its_reason_if_known():
    path = "topics.0.partitions.1.error_code"
    shared = Difference("transactions", 4, "TxnOffsetCommit 3", path, kafka=120, sim=48)
    other = Difference("transactions", 3, "EndTxn 3", "error_code", kafka=0, sim=48)
    finding = Finding(Sequence("transactions", 7008, (), ()), by_chance=True)
    finding.once_different = [shared]
    assert chance_line(finding).startswith(
        "transactions_7008: differed by chance: A real broker asks the coordinator for several"
    )
    finding.once_different = [other, shared]
    assert chance_line(finding) == (
        "transactions_7008: differed once, no reason is known: 3: EndTxn 3: error_code: Kafka 0, here 48"
    )


def test_consequences_of_a_random_difference_need_no_reason():
    fetch = Difference("share_groups", 6, "ShareFetch 2", "responses", kafka=[], sim="(no such field)")
    later = Difference("share_groups", 7, "ShareAcknowledge 2", "responses.0.partitions.0.error_code", 121, 0)
    finding = Finding(Sequence("share_groups", 5031, (), ()), by_chance=True, once_different=[fetch, later])
    assert chance_line(finding).startswith("share_groups_5031: differed by chance: A real broker reads")
    same_answer = Difference("share_groups", 6, "ShareFetch 2", "error_code", kafka=0, sim=122)
    finding.once_different = [fetch, same_answer, later]
    assert chance_line(finding).startswith("share_groups_5031: differed once, no reason is known: 6: ShareFetch 2")


def test_a_gate_does_a_verb_once_when_all_that_are_left_have_come():
    async def run():
        done = []

        async def verb(name, broker):
            done.append((name, broker))

        gate = Gate(3, verb)
        two = [asyncio.create_task(gate.verb("kill", 2)) for _ in range(2)]
        await asyncio.sleep(0)
        assert done == []
        gate.leave()
        await asyncio.gather(*two)
        return done

    assert asyncio.run(run()) == [("kill", 2)]


@pytest.mark.parametrize(
    ("areas", "said"),
    [
        ("groups,acls", "--areas acls: ACLs are compared in a table of their own"),
        ("own", "--areas own: choose from groups, transactions,"),
    ],
)
def test_an_area_that_cannot_be_fuzzed_is_one_line(areas, said):
    done = CliRunner().invoke(main, ["fuzz", "--areas", areas, "--reference", "jvm"])
    assert done.exit_code == 2
    assert said in done.output


def test_a_recording_cannot_be_fuzzed():
    done = CliRunner().invoke(main, ["fuzz", "--reference", "recorded"])
    assert done.exit_code == 2
    assert "fuzzing needs a real Kafka" in done.output


def test_error_of_an_invalid_sequence_file_is_one_line(tmp_path):
    path = tmp_path / "other.json"
    path.write_text("{}")
    done = CliRunner().invoke(main, ["fuzz", "--play", str(path), "--reference", "jvm"])
    assert done.exit_code == 2
    assert "is not a sequence of a fuzz run" in done.output
