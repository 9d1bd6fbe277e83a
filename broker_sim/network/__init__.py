"""Sockets towards clients: connections, frames, and the server that accepts them."""

from broker_sim.network.connection import Connection, RequestSink, SendResponse
from broker_sim.network.login import ListenerLogin, ListenerSecurity
from broker_sim.network.socket_server import SocketServer

__all__ = ["Connection", "ListenerLogin", "ListenerSecurity", "RequestSink", "SendResponse", "SocketServer"]
