"""What happens to the cluster of a random run, whoever uses it: actions as data, drawn from a seed, carried out.

setting = Setting(brokers=3, partitions=1, duration_ms=4_000)
Actions(cluster, "orders").schedule(draw_faults(random.Random(7), setting))
"""
