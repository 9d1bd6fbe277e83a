import pytest
from broker_sim_integration.clients.broker_client import Append, Position, fetch_request, produce_request
from broker_sim_integration.clients.topics import Topic

from broker_sim.protocol import messages

ID = bytes(range(16))
TOPIC, OTHER = Topic("orders", ID, ((1,), (2,))), Topic("other", bytes(16), ((1,),))


def test_entry_gets_the_id_or_the_name_of_its_topic():
    named = TOPIC.named_in(messages.ProduceRequest.TopicProduceData(), by_id=False)
    assert (named.name, bytes(named.topic_id)) == ("orders", bytes(16))
    named = TOPIC.named_in(messages.ProduceRequest.TopicProduceData(), by_id=True)
    assert (named.name, bytes(named.topic_id)) == ("", ID)
    fetched = messages.FetchRequest.FetchTopic()
    assert TOPIC.named_in(fetched, by_id=False, name_field="topic").topic == "orders"


@pytest.mark.parametrize("version", [12, 13])
def test_requests_have_one_entry_for_each_topic_in_the_order_of_its_first_partition(version):
    where = [(OTHER, 0), (TOPIC, 1), (OTHER, 1)]
    appends = [Append(topic, partition, b"") for topic, partition in where]
    produce = produce_request(appends, acks=1, timeout_ms=1, version=version)
    assert [[data.index for data in one.partition_data] for one in produce.topic_data] == [[0, 1], [1]]
    positions = [Position(topic, partition) for topic, partition in where]
    fetch = fetch_request(positions, version=version)
    assert [[asked.partition for asked in one.partitions] for one in fetch.topics] == [[0, 1], [1]]
    entries = [*produce.topic_data, *fetch.topics]
    assert [bytes(one.topic_id) == ID for one in entries] == [False, version == 13] * 2
