"""The HTTP interface of a cluster, for `broker-sim ctl`, scripts and Prometheus.

This package imports none of its modules: the application needs aiohttp, the server and the client do not.
"""
