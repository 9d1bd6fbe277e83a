"""What `broker-sim ctl` prints of groups, share partitions, transactions and producers."""

import pytest

from broker_sim.cli.answers import ROWS_OF_STATUS, print_answer

MORE = 3
GROUPS = [
    {
        "id": f"g{n}", "type": "share", "state": "Stable", "coordinator": 1, "members": [], "lag": 0,
        "share_partitions": [],
    }
    for n in range(ROWS_OF_STATUS)
]  # fmt: skip
SHARE_PARTITION = {"topic": "orders", "start_offset": 3, "lag": 4, "in_flight": []}
TRANSACTIONS = [
    {
        "transactional_id": f"tx{n}", "state": "Ongoing", "pending_state": None, "age_ms": n,
        "producer_id": n, "producer_epoch": 0, "coordinator": 1, "partitions": [],
    }
    for n in range(ROWS_OF_STATUS + MORE)
]  # fmt: skip
PRODUCERS = [
    {
        "topic": "orders", "partition": n, "producer_id": n, "producer_epoch": 0, "last_sequence": 0,
        "transaction_start_offset": None, "transactional_id": None, "is_hanging": False,
    }
    for n in range(1)
]  # fmt: skip
CLIENT = {
    "client_id": "billing", "software": "librdkafka 2.16.0", "pushes": 3,
    "metrics": [{"name": "requests", "value": 4.0, "attributes": {"node.id": "1"}}],
}  # fmt: skip
STATUS = {
    "memory": {"used_bytes": 0, "limit_bytes": 1}, "metadata_delay_ms": 0, "brokers": [], "topics": [],
    "faults": [], "links": [], "groups": GROUPS, "transactions": TRANSACTIONS, "producers": PRODUCERS,
    "client_metrics": [CLIENT],
}  # fmt: skip


def test_status_has_the_first_rows_and_says_where_the_others_are(capsys):
    print_answer("status", {}, STATUS)
    text = capsys.readouterr().out
    assert text.count(" Stable ") == ROWS_OF_STATUS
    assert text.count(" Ongoing ") == ROWS_OF_STATUS
    assert text.count("more: ") == 1
    assert f"{MORE} more: broker-sim ctl transactions\n" in text
    assert f" tx{ROWS_OF_STATUS + MORE - 1} " in text, "the oldest one"
    assert " orders-0 " in text


def test_status_leaves_out_what_there_is_not(capsys):
    print_answer("status", {}, STATUS | {"groups": [], "transactions": [], "producers": [], "client_metrics": []})
    text = capsys.readouterr().out
    assert not any(title in text for title in ("groups", "transactions", "producers", "metrics"))


def test_status_lists_the_last_clients_that_have_pushed_metrics(capsys):
    clients = [CLIENT | {"client_id": f"client{number}"} for number in range(ROWS_OF_STATUS + MORE)]
    print_answer("status", {}, STATUS | {"client_metrics": clients})
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if " librdkafka 2.16.0 " in line]
    assert rows[0] == [f"client{ROWS_OF_STATUS + MORE - 1}", "librdkafka", "2.16.0", "3", "1"]
    assert len(rows) == ROWS_OF_STATUS
    assert f"{MORE} more: broker-sim ctl client-metrics" in lines


def test_absence_of_client_metrics_is_said(capsys):
    print_answer("client_metrics", {}, {"clients": []})
    assert "no client has pushed metrics" in capsys.readouterr().out


def test_client_metrics_are_shown_with_attributes_and_values(capsys):
    print_answer("client_metrics", {}, {"clients": [CLIENT]})
    assert capsys.readouterr().out == "billing (librdkafka 2.16.0): 3 pushes\n\trequests{node.id=1}\t4\n"


def test_share_partitions_are_below_the_groups_that_they_are_of(capsys):
    partitions = [SHARE_PARTITION | {"partition": number} for number in range(ROWS_OF_STATUS + MORE)]
    groups = [GROUPS[0] | {"share_partitions": partitions}]
    print_answer("status", {}, STATUS | {"groups": groups})
    text = capsys.readouterr().out
    assert "share partitions" in text
    assert text.count(" orders-") == ROWS_OF_STATUS + len(PRODUCERS)
    assert f"{MORE} more: broker-sim ctl groups\n" in text
    print_answer("groups", {}, {"groups": groups})
    assert capsys.readouterr().out.count(" orders-") == len(partitions)


@pytest.mark.parametrize(
    ("verb", "rows"), [("groups", GROUPS), ("transactions", TRANSACTIONS), ("producers", PRODUCERS)]
)
def test_verb_has_all_rows_of_its_own(capsys, verb, rows):
    print_answer(verb, {}, {verb: rows})
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines[4:] if line.strip()]) == len(rows)
    print_answer(verb, {}, {verb: []})
    assert capsys.readouterr().out.startswith(verb)
