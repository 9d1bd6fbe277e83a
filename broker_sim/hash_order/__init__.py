"""The order in which Java's, Scala's and Kafka's hash tables hand out their keys.

Kafka walks over such tables where it answers and assigns, so clients see their order.
"""
