"""Takes a lock of the partition for each delivery: a worker that is killed meanwhile never gives it back."""

import asyncio
from math import inf

import pytest
from shop import each_order_is_delivered

LEASE_S = 5


class Locks:
    """A service with a lock for each partition, whose owner has it until its lease ends."""

    def __init__(self, lease_s):
        self._lease_s = lease_s
        self._owners = {}

    async def take(self, partition, owner):
        """Wait until the lock is free, or this owner's, and take it for `lease_s`."""
        while True:
            now_s = asyncio.get_running_loop().time()
            other, until_s = self._owners.get(partition, (owner, inf))
            if other == owner or until_s < now_s:
                self._owners[partition] = owner, now_s + self._lease_s
                return
            await asyncio.sleep(0.5)

    def give_back(self, partition, owner):
        """Let others take the lock, if it is this owner's."""
        if self._owners.get(partition, (None,))[0] == owner:
            del self._owners[partition]


async def each_partition_is_locked(chaos, lease_s):
    """Deliver each order while its partition is locked."""
    locks = Locks(lease_s)

    async def work(orders, deliver):
        owner = object()
        async for order in orders:
            await locks.take(order.partition, owner)
            try:
                await deliver(order)
            finally:
                locks.give_back(order.partition, owner)
            await orders.commit()

    await each_order_is_delivered(chaos, work)


@pytest.mark.chaos(duration_s=12, repair_aiokafka=True)
async def test_wrong(chaos):
    """Fails: no `finally` runs when a process is killed."""
    await each_partition_is_locked(chaos, inf)


@pytest.mark.chaos(duration_s=12, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes: a lease ends by itself."""
    await each_partition_is_locked(chaos, LEASE_S)
