"""The HTTP side of a cluster: what `broker-sim ctl`, scripts and Prometheus talk to.

Modules are imported one by one: the server needs a cluster, the application aiohttp, the client
neither.
"""
