"""One module per API: from a decoded request to an answer, now or later."""

from broker_sim.handlers.api_table import ApiSpec, ApiTable
from broker_sim.handlers.context import RequestContext, Services
from broker_sim.handlers.controller_channel import ControllerChannel
from broker_sim.handlers.fault_injector import Fault, FaultInjector, Loss, parse_api
from broker_sim.handlers.producer_ids import ProducerIds

__all__ = [
    "ApiSpec",
    "ApiTable",
    "ControllerChannel",
    "Fault",
    "FaultInjector",
    "Loss",
    "ProducerIds",
    "RequestContext",
    "Services",
    "parse_api",
]
