"""The iteration order of hash tables in Java, Scala and Kafka, and the order of Java's priority queue.

Kafka iterates over such collections when it builds responses and assignments, so clients see their order.
"""
