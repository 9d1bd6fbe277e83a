"""The order in which hash tables of Java, Scala and Kafka hand out their keys, and a heap of Java its elements.

Kafka walks over such tables and takes from such heaps where it answers and assigns, so clients see their order.
"""
