"""One module per API: from a decoded request to its response, sent now or later."""

from broker_sim.handlers.api_table import ApiSpec, ApiTable
from broker_sim.handlers.context import BrokerServices, ClientConnection, RequestContext

__all__ = ["ApiSpec", "ApiTable", "BrokerServices", "ClientConnection", "RequestContext"]
