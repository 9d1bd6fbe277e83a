"""Registration, heartbeats and controlled shutdown; mirrors `BrokerLifecycleManager`.

A broker registers, which leaves it fenced, and then sends heartbeats. The first heartbeat after it has
caught up with the metadata unfences it, and only then does it accept connections from clients and other
brokers. It applies the metadata from the start: until the session from before its restart expires, it leads
and follows the same partitions as before, although it is unreachable. If no heartbeat reaches the
controller for `broker.session.timeout.ms`, the controller fences it again.

One request to the controller is in flight at a time. The next one follows

- at once after the registration, or when the metadata that a starting broker waits for arrives
- 50 ms after the first response in a controlled shutdown
- `broker.heartbeat.interval.ms` after every other response, including errors

Deliberate differences: the state RECOVERY is left out, because a broker has nothing to do between
catching up and being unfenced, so it never requests to stay fenced; and a starting broker waits for the
metadata instead of polling every 10 ms.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from broker_sim.config import BrokerConfig, Endpoint
    from broker_sim.controller import Controller
    from broker_sim.controller.controller_link import ControllerLink
    from broker_sim.controller.requests import HeartbeatReply
    from broker_sim.errors import ApiError
    from broker_sim.metadata import MetadataImage
    from broker_sim.runtime.process import Handle, Process

log = get_logger(__name__)

CONTROLLED_SHUTDOWN_TIMEOUT_MS: Final = 300_000
"""Time in ms after which a broker stops without the controller's permission; fixed in Kafka too."""
FIRST_SHUTDOWN_INTERVAL_MS: Final = 50


class LifecycleState(Enum):
    """Stage of a broker's life; mirrors `org.apache.kafka.metadata.BrokerState`."""

    NOT_RUNNING = "not running"
    STARTING = "starting"
    RUNNING = "running"
    PENDING_CONTROLLED_SHUTDOWN = "pending controlled shutdown"
    SHUTTING_DOWN = "shutting down"


class BrokerLifecycle:
    """Registers one broker with the controller and sends its heartbeats, until it shuts down."""

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        process: Process,
        *,
        endpoints: tuple[Endpoint, ...],
        rng: random.Random,
    ) -> None:
        self.broker_epoch = -1
        self.state = LifecycleState.NOT_RUNNING
        self._broker_id = broker_id
        self._log = log.bind(process.clock, node=process.name)
        self._config = config
        self._process = process
        self._endpoints = endpoints
        self._incarnation_id = rng.randbytes(16)
        self._request_in_flight = False
        self._next_at_once = False
        self._next_request: Handle | None = None
        self._has_shutdown_reply = False
        self._on_unfenced: Callable[[], object] = lambda: None
        self._shutdown_timeout: Handle | None = None
        self._on_shutdown: Callable[[], object] | None = None

    def start(
        self,
        controller: ControllerLink,
        image_version: Callable[[], int],
        previous_broker_epoch: int = -1,
        on_unfenced: Callable[[], object] = lambda: None,
        offline_logs: Callable[[], frozenset[tuple[bytes, int]]] = frozenset,
    ) -> None:
        """Register and begin to send heartbeats; `on_unfenced()` is called when the broker is first unfenced.

        `previous_broker_epoch` is that of the broker's last clean shutdown, -1 if there was none.
        `offline_logs()` returns topic ids and partitions to report to the controller.
        """
        self._offline_logs = offline_logs
        self._controller = controller
        self._image_version = image_version
        self._previous_broker_epoch = previous_broker_epoch
        self._on_unfenced = on_unfenced
        self.state = LifecycleState.STARTING
        self._communicate()

    def on_image(self, image: MetadataImage) -> None:
        """Request to be unfenced once the metadata that a starting broker waits for has arrived."""
        broker = image.brokers.get(self._broker_id)
        if (
            self.state is LifecycleState.STARTING
            and broker is not None
            and broker.epoch == self.broker_epoch
            and broker.fenced
        ):
            self._communicate()

    def propagate_failure(self) -> None:
        """Report an offline log to the controller at once, if the broker is registered."""
        if self.broker_epoch >= 0:
            self._communicate()

    def begin_controlled_shutdown(self, on_done: Callable[[], object]) -> None:
        """Ask the controller to move this broker's leaderships to other brokers.

        `on_done()`, which ends the process, is called when the broker may stop: with the controller's
        permission, or `CONTROLLED_SHUTDOWN_TIMEOUT_MS` later. A broker that was never unfenced may
        stop at once.
        """
        assert self._on_shutdown is None, "a broker shuts down once"
        self._on_shutdown = on_done
        if self.state is not LifecycleState.RUNNING:
            self._shut_down()
            return
        self.state = LifecycleState.PENDING_CONTROLLED_SHUTDOWN
        self._shutdown_timeout = self._process.call_later(CONTROLLED_SHUTDOWN_TIMEOUT_MS, self._on_shutdown_timeout)
        self._communicate()

    def _on_shutdown_timeout(self) -> None:
        self._log.warning("controlled_shutdown_timed_out")
        self._shut_down()

    def _shut_down(self) -> None:
        self.state = LifecycleState.SHUTTING_DOWN
        self._log.info("broker_shut_down", epoch=self.broker_epoch)
        for handle in (self._next_request, self._shutdown_timeout):
            if handle is not None:
                handle.cancel()
        assert self._on_shutdown is not None
        self._on_shutdown()

    # -- one request at a time ------------------------------------------------------------------

    def _communicate(self) -> None:
        """Send the next request now, or right after the response to the one in flight."""
        if self._request_in_flight:
            self._next_at_once = True
            return
        if self._next_request is not None:
            self._next_request.cancel()
            self._next_request = None
        self._request_in_flight = True
        if self.broker_epoch < 0:
            self._register()
        else:
            self._send_heartbeat()

    def _communicate_later(self, delay_ms: int) -> None:
        if self._next_at_once:
            self._next_at_once = False
            self._communicate()
        else:
            self._next_request = self._process.call_later(delay_ms, self._communicate)

    def _register(self) -> None:
        def register(active: Controller) -> int:
            return active.register_broker(
                self._broker_id,
                endpoints=self._endpoints,
                rack=self._config.broker_rack,
                incarnation_id=self._incarnation_id,
                previous_broker_epoch=self._previous_broker_epoch,
            )

        self._controller.call(register, self._on_registered, self._on_registration_refused)

    def _on_registered(self, broker_epoch: int) -> None:
        self._request_in_flight = False
        self.broker_epoch = broker_epoch
        self._communicate()

    def _on_registration_refused(self, error: ApiError) -> None:
        """Retry later: usually the session from before the broker's restart has not expired yet."""
        self._request_in_flight = False
        self._log.info("registration_refused", error=error.error_code.name)
        self._communicate_later(self._config.broker_heartbeat_interval_ms)

    def _send_heartbeat(self) -> None:
        epoch, version = self.broker_epoch, self._image_version()
        wants_shutdown = self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN
        offline_logs = self._offline_logs()

        def beat(active: Controller) -> HeartbeatReply:
            return active.broker_heartbeat(
                self._broker_id,
                epoch,
                wants_shutdown=wants_shutdown,
                current_metadata_version=version,
                offline_logs=offline_logs,
            )

        self._controller.call(beat, self._on_heartbeat_reply, self._on_heartbeat_refused)

    def _on_heartbeat_refused(self, error: ApiError) -> None:
        self._request_in_flight = False
        self._log.info("heartbeat_refused", error=error.error_code.name)
        self._communicate_later(self._config.broker_heartbeat_interval_ms)

    def _on_heartbeat_reply(self, reply: HeartbeatReply) -> None:
        self._request_in_flight = False
        delay_ms = self._config.broker_heartbeat_interval_ms
        if self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            if reply.should_shutdown:
                self._shut_down()
                return
            # The other brokers have not caught up yet; usually they do soon.
            if not self._has_shutdown_reply:
                self._has_shutdown_reply = True
                delay_ms = FIRST_SHUTDOWN_INTERVAL_MS
        elif self.state is LifecycleState.STARTING and not reply.is_fenced:
            self._log.info("broker_started", epoch=self.broker_epoch)
            self.state = LifecycleState.RUNNING
            self._on_unfenced()
        self._communicate_later(delay_ms)
