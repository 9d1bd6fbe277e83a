"""The task assignor of streams groups. Kafka's coordinator has one, `StickyTaskAssignor`.

Deliberate difference: Kafka's `MockAssignor` is left out, because no broker uses it.
"""
