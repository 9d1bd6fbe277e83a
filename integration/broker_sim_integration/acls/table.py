"""The requests of the table: each API, once for each kind of resource whose rights it needs.

Each can be repeated: an allowed request changes nothing, or fails for another reason.
"""

from __future__ import annotations

from typing import Final

from broker_sim_integration.acls.requests.cluster import cluster_requests
from broker_sim_integration.acls.requests.configs import configs_requests
from broker_sim_integration.acls.requests.data import data_requests
from broker_sim_integration.acls.requests.groups import groups_requests
from broker_sim_integration.acls.requests.share import share_requests
from broker_sim_integration.acls.requests.streams import streams_requests
from broker_sim_integration.acls.requests.tokens import tokens_requests
from broker_sim_integration.acls.requests.topics import topics_requests
from broker_sim_integration.acls.requests.transactions import transactions_requests

TABLE: Final = (
    *data_requests(),
    *share_requests(),
    *streams_requests(),
    *topics_requests(),
    *groups_requests(),
    *transactions_requests(),
    *configs_requests(),
    *cluster_requests(),
    *tokens_requests(),
)
