"""Sockets towards clients and links between the brokers."""

from broker_sim.network.asyncio_scheduler import AsyncioScheduler
from broker_sim.network.connection import Connection, RequestSink, Respond
from broker_sim.network.links import CONTROLLER_ID, LinkFault, Links
from broker_sim.network.socket_server import SocketServer

__all__ = [
    "CONTROLLER_ID",
    "AsyncioScheduler",
    "Connection",
    "LinkFault",
    "Links",
    "RequestSink",
    "Respond",
    "SocketServer",
]
