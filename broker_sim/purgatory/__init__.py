"""The purgatory library under the name by which users import it; see docs/how/purgatory.md."""

from typing import TYPE_CHECKING

import broker_sim_purgatory as _library

if TYPE_CHECKING:
    from broker_sim_purgatory import *  # noqa: F403 - the public names
else:

    def __getattr__(name: str) -> object:
        return getattr(_library, name)  # what needs asyncio is imported with its first use


__all__ = _library.__all__
