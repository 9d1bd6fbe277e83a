"""Registration and heartbeats; mirrors ``kafka.server.BrokerLifecycleManager``.

A broker starts fenced. Its first heartbeat after it has caught up with the metadata unfences it;
if its heartbeats stay away for ``broker.session.timeout.ms``, the controller fences it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.runtime.process import PeriodicTask

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from broker_sim.config import BrokerConfig
    from broker_sim.controller import Controller
    from broker_sim.controller.requests import HeartbeatReply
    from broker_sim.handlers import ControllerChannel
    from broker_sim.metadata import MetadataImage
    from broker_sim.runtime.process import Process

__all__ = ["BrokerLifecycle"]


class BrokerLifecycle:
    """Keeps one broker known to the controller."""

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        process: Process,
        address: tuple[str, int],
        rng: random.Random,
    ) -> None:
        self.broker_epoch = -1
        self._broker_id = broker_id
        self._config = config
        self._process = process
        self._address = address
        self._incarnation_id = rng.randbytes(16)

    def start(self, controller: ControllerChannel, image_version: Callable[[], int]) -> None:
        """Register, then send a heartbeat at once and every ``broker.heartbeat.interval.ms``."""
        self._controller = controller
        self._image_version = image_version
        host, port = self._address

        def register(active: Controller) -> int | ErrorCode:
            try:
                return active.register_broker(
                    self._broker_id, host, port, self._config.broker_rack, self._incarnation_id
                )
            except ApiError as error:
                return error.error_code

        def on_registered(broker_epoch: int | ErrorCode) -> None:
            if isinstance(broker_epoch, ErrorCode):
                # The broker's last life is not over for the controller yet (its session runs on).
                self._process.call_later(
                    self._config.broker_heartbeat_interval_ms,
                    self.start,
                    controller,
                    image_version,
                )
                return
            self.broker_epoch = broker_epoch
            self._send_heartbeat()
            PeriodicTask(
                self._process, self._config.broker_heartbeat_interval_ms, self._send_heartbeat
            )

        controller.call(register, on_registered)

    def on_image(self, image: MetadataImage) -> None:
        """Ask at once to be unfenced when the metadata that was waited for has come."""
        broker = image.brokers.get(self._broker_id)
        if broker is not None and broker.epoch == self.broker_epoch and broker.fenced:
            self._send_heartbeat()

    def _send_heartbeat(self) -> None:
        epoch, version = self.broker_epoch, self._image_version()

        def beat(active: Controller) -> HeartbeatReply | ErrorCode:
            try:
                return active.broker_heartbeat(
                    self._broker_id,
                    epoch,
                    wants_fence=False,
                    wants_shutdown=False,
                    current_metadata_version=version,
                )
            except ApiError as error:
                return error.error_code

        self._controller.call(beat, lambda _: None)
