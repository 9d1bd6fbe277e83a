"""Iteration orders of Java's and Kafka's tables; the expected orders were printed by them."""

from broker_sim.hash_order.hash_codes import integer_hash, string_hash, uuid_hash
from broker_sim.hash_order.java_order import HashTable, TimelineMap, hash_order

MEMBERS = ("2163c3698b529b4a-1", "4d1fe09f0af438d2-2", "7bc73a83fd63ed5b-3", "aaa", "bbb")
FIRST, SECOND = (bytes.fromhex("765a9cbe77b49b9a8888f4c24a5dba95"), bytes.fromhex("fc18db54916bbd929f651ddd16a904de"))


def test_newest_key_of_a_timeline_bucket_comes_first():
    table = TimelineMap(string_hash)
    seen = []
    for member in MEMBERS:
        table.put(member, 1)
        table.put(member, 2)
        seen.append([name[-1] for name in table.in_order()])
    assert seen == [["1"], ["1", "2"], ["1", "3", "2"], ["1", "a", "3", "2"], ["b", "1", "a", "2", "3"]]


def test_integers_are_ordered_by_bucket():
    assert hash_order([33, 17, 1, 16], integer_hash) == [16, 33, 17, 1]


def test_table_doubles_at_the_thirteenth_key():
    assert hash_order([16, *range(11)], integer_hash) == [16, *range(11)]
    assert hash_order([16, *range(12)], integer_hash) == [*range(12), 16]


def test_table_puts_computed_keys_first_in_their_bucket():
    put_then_computed: HashTable = HashTable(uuid_hash, 1)
    put_then_computed.put(FIRST, 1)
    put_then_computed.add(SECOND, 2)
    assert put_then_computed.in_order() == [SECOND, FIRST]


def test_table_grows_after_a_put():
    table: HashTable = HashTable(uuid_hash, 1)
    table.put(FIRST, 1)
    table.put(SECOND, 2)
    assert table.in_order() == [FIRST, SECOND]


def test_removed_key_is_not_in_the_order():
    table: HashTable = HashTable(integer_hash)
    table.put(1, None)
    table.put(2, None)
    del table[1]
    assert table.in_order() == [2]


def test_key_put_again_comes_last_in_its_bucket():
    table: HashTable = HashTable(integer_hash)
    for key in (1, 17, 33):
        table.put(key, str(key))
    assert table.pop(1) == "1"
    assert table.pop(1, None) is None
    table.put(1, "again")
    assert table.values_in_order() == ["17", "33", "again"]


def test_table_keeps_nothing_of_removed_keys():
    table: HashTable = HashTable(integer_hash)
    for key in range(100):
        table.put(key, None)
        if key % 2:
            del table[key]
        else:
            table.pop(key)
    assert table._places == {}
