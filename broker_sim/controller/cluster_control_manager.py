"""The brokers of the cluster: registration, epochs, heartbeats and sessions.

Mirrors `ClusterControlManager`, `BrokerHeartbeatManager` and `BrokerHeartbeatTracker` of
Kafka. Deliberate differences: features and log directories of brokers are left out; the version of
the image stands for the offset of the metadata log.

Facts that are easily missed:

- Only heartbeats renew a session, registrations do not. A broker that registers under a new
  incarnation is refused with DUPLICATE_BROKER_REGISTRATION until the session of the old one expires,
  even after a controlled shutdown; it has to retry until then.
- A registration under the same incarnation keeps the broker's epoch and its state.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from broker_sim_purgatory import Clock

from broker_sim.controller.replica_placer import UsableBroker
from broker_sim.controller.status import QuorumObserver
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata import BrokerState, MetadataDelta, MetadataImage

_NO_ACTIVE_BROKER: Final = 1 << 63


class BrokerControlState(Enum):
    """A broker's state in the controller; mirrors the enum of the same name."""

    FENCED = "in no ISR, leads nothing"
    UNFENCED = "may be in ISRs and lead"
    CONTROLLED_SHUTDOWN = "its leaderships move to other brokers"
    SHUTDOWN_NOW = "may stop"


@dataclass(slots=True)
class _Heartbeats:
    """State from the heartbeats of one incarnation; versions are image versions."""

    registered_at_version: int
    metadata_version: int = -1
    end_version: int = -1
    """The version of the controller's image when the last heartbeat was processed."""
    heartbeat_ms: int = -1
    caught_up_ms: int = -1
    """Time in ms when the broker last had all metadata, as in `LeaderState.ReplicaState`; -1 for never."""
    controlled_shutdown_version: int | None = None

    def record_heartbeat(self, metadata_version: int, end_version: int, now_ms: int) -> None:
        """Record the broker's metadata version, and whether it had all metadata of this or the previous heartbeat."""
        if metadata_version >= end_version:
            self.caught_up_ms = now_ms
        elif metadata_version >= self.end_version >= 0:
            self.caught_up_ms = max(self.caught_up_ms, self.heartbeat_ms)
        self.metadata_version, self.end_version, self.heartbeat_ms = metadata_version, end_version, now_ms


class ClusterControlManager:
    """The state of brokers that is not in the image. Thread rule: the controller's thread."""

    def __init__(self, clock: Clock, session_timeout_ms: int) -> None:
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._heartbeats: dict[int, _Heartbeats] = {}
        self._contact_ms: dict[tuple[int, int], int] = {}

    def restore(self, image: MetadataImage) -> None:
        """Restore the brokers of an earlier controller; none of them has a session."""
        for broker_id in image.brokers:
            self._heartbeats[broker_id] = _Heartbeats(image.version)

    def register(self, delta: MetadataDelta, broker: BrokerState) -> BrokerState:
        """Write the registration into `delta` and return it with its epoch.

        Only the address, the rack and the incarnation of `broker` are used. Raises ApiError with
        DUPLICATE_BROKER_REGISTRATION while another incarnation has a valid session.
        """
        existing = delta.brokers.get(broker.broker_id)
        version = delta.base.version + 1
        if existing is None or existing.incarnation_id != broker.incarnation_id:
            if existing is not None and self._has_valid_session(existing):
                raise ApiError(
                    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                    "Another broker is registered with that broker id. If the broker was recently"
                    " restarted this should self-resolve once the heartbeat manager expires the"
                    " broker's session.",
                )
            broker = broker._replace(epoch=version, fenced=True, in_controlled_shutdown=False)
            # A broker that has its registration has had all metadata of that time.
            self._heartbeats[broker.broker_id] = _Heartbeats(
                version, end_version=version, heartbeat_ms=self._clock.now_ms()
            )
        else:
            broker = broker._replace(
                epoch=existing.epoch,
                fenced=existing.fenced,
                in_controlled_shutdown=existing.in_controlled_shutdown,
            )
            self._heartbeats[broker.broker_id].registered_at_version = version
        delta.set_broker(broker)
        return broker

    def unregister(self, delta: MetadataDelta, broker_id: int) -> None:
        """Remove the broker's registration, whether it is fenced or not; its session is left to expire.

        Raises ApiError with BROKER_ID_NOT_REGISTERED.
        """
        if broker_id not in delta.brokers:
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
        delta.remove_broker(broker_id)
        del self._heartbeats[broker_id]

    def check_broker_epoch(self, delta: MetadataDelta, broker_id: int, broker_epoch: int) -> None:
        """Raise ApiError with STALE_BROKER_EPOCH unless this is the broker's current epoch."""
        broker = delta.brokers.get(broker_id)
        if broker is None:
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
        if broker.epoch != broker_epoch:
            raise ApiError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}",
            )

    def track(self, broker_id: int, broker_epoch: int) -> None:
        """Renew the session; Kafka does so before it checks the heartbeat."""
        self._contact_ms[broker_id, broker_epoch] = self._clock.now_ms()

    def renew_sessions(self) -> None:
        """Restart all sessions, as after a heartbeat of each broker."""
        self._contact_ms = dict.fromkeys(self._contact_ms, self._clock.now_ms())

    def is_caught_up(self, broker_id: int, metadata_version: int) -> bool:
        """Return whether the broker's image has its own registration."""
        return metadata_version >= self._heartbeats[broker_id].registered_at_version

    def current_state(self, broker: BrokerState) -> BrokerControlState:
        """Return the broker's state before its heartbeat is processed."""
        if self._heartbeats[broker.broker_id].controlled_shutdown_version is not None:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.FENCED if broker.fenced else BrokerControlState.UNFENCED

    def next_state(
        self,
        delta: MetadataDelta,
        broker_id: int,
        current: BrokerControlState,
        *,
        caught_up: bool,
        wants_shutdown: bool,
        has_leaderships: Callable[[MetadataDelta, int], bool],
    ) -> BrokerControlState:
        """Mirror `BrokerHeartbeatManager.calculateNextBrokerState`; brokers never request to be fenced."""
        states = BrokerControlState
        if current is states.FENCED:
            if wants_shutdown:
                return states.SHUTDOWN_NOW
            return states.UNFENCED if caught_up else current
        if current is states.UNFENCED and not wants_shutdown:
            return current
        if has_leaderships(delta, broker_id):
            return states.CONTROLLED_SHUTDOWN
        if current is states.UNFENCED or self._may_shut_down(delta, broker_id):
            return states.SHUTDOWN_NOW
        return current

    def _may_shut_down(self, delta: MetadataDelta, broker_id: int) -> bool:
        """Return whether all unfenced brokers have the metadata in which the broker leads nothing."""
        version = self._heartbeats[broker_id].controlled_shutdown_version
        return version is not None and version <= self._lowest_active_version(delta)

    def touch(self, broker_id: int, *, metadata_version: int, state: BrokerControlState, version: int) -> None:
        """Record the result of a heartbeat; `version` is that of the resulting image."""
        heartbeats = self._heartbeats[broker_id]
        heartbeats.record_heartbeat(metadata_version, version, self._clock.now_ms())
        if state is not BrokerControlState.CONTROLLED_SHUTDOWN:
            heartbeats.controlled_shutdown_version = None
        elif heartbeats.controlled_shutdown_version is None:
            heartbeats.controlled_shutdown_version = version

    def fenced(self, broker_id: int) -> None:
        """End the controlled shutdown of a broker that was fenced."""
        self._heartbeats[broker_id].controlled_shutdown_version = None

    def end_session(self, delta: MetadataDelta, broker_id: int) -> BrokerState | None:
        """Drop all sessions of a broker; return the broker to fence, None if it is not registered."""
        for key in [key for key in self._contact_ms if key[0] == broker_id]:
            del self._contact_ms[key]
        return delta.brokers.get(broker_id)

    def take_expired(self, delta: MetadataDelta) -> tuple[bool, BrokerState | None]:
        """Drop one expired session.

        Returns whether there was one, and the broker to fence: None if a later incarnation has
        registered since.
        """
        now_ms = self._clock.now_ms()
        for (broker_id, epoch), contact_ms in self._contact_ms.items():
            if contact_ms + self._session_timeout_ms < now_ms:
                del self._contact_ms[broker_id, epoch]
                broker = delta.brokers.get(broker_id)
                return True, broker if broker is not None and broker.epoch == epoch else None
        return False, None

    def usable_brokers(self, delta: MetadataDelta) -> Iterator[UsableBroker]:
        """Iterate over the brokers that may get replicas, including fenced ones."""
        for broker in delta.brokers.values():
            if self._heartbeats[broker.broker_id].controlled_shutdown_version is None:
                yield UsableBroker(broker.broker_id, broker.rack, broker.fenced)

    def last_contact_ms(self, broker: BrokerState) -> int | None:
        """Return the time in ms of the broker's last heartbeat, None if its session has expired."""
        return self._contact_ms.get((broker.broker_id, broker.epoch))

    def contact_ages_ms(self, image: MetadataImage) -> dict[int, int]:
        """Return the age in ms of the last heartbeat of each broker with a valid session, by id."""
        now_ms = self._clock.now_ms()
        return {
            broker_id: now_ms - contact_ms
            for broker_id, broker in sorted(image.brokers.items())
            if (contact_ms := self.last_contact_ms(broker)) is not None
        }

    def observers(self, image: MetadataImage) -> Iterator[QuorumObserver]:
        """Iterate over the brokers with a valid session, by id."""
        passed_ms = self._clock.wall_clock_ms() - self._clock.now_ms()
        for _, broker in sorted(image.brokers.items()):
            contact_ms = self.last_contact_ms(broker)
            if contact_ms is not None:
                heartbeats = self._heartbeats[broker.broker_id]
                caught_up_ms = -1 if heartbeats.caught_up_ms < 0 else heartbeats.caught_up_ms + passed_ms
                yield QuorumObserver(
                    broker.broker_id, heartbeats.metadata_version, contact_ms + passed_ms, caught_up_ms
                )

    def _has_valid_session(self, broker: BrokerState) -> bool:
        contact_ms = self.last_contact_ms(broker)
        if contact_ms is None:
            return False
        return contact_ms + self._session_timeout_ms >= self._clock.now_ms()

    def _lowest_active_version(self, delta: MetadataDelta) -> int:
        return min(
            (
                self._heartbeats[broker.broker_id].metadata_version
                for broker in delta.brokers.values()
                if self.current_state(broker) is BrokerControlState.UNFENCED
            ),
            default=_NO_ACTIVE_BROKER,
        )


def is_active(delta: MetadataDelta, broker_id: int) -> bool:
    """Return whether the broker may be in an ISR and lead."""
    broker = delta.brokers.get(broker_id)
    return broker is not None and broker.is_active
