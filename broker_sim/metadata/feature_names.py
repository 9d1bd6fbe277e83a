"""Names of a cluster's features; mirrors `org.apache.kafka.server.common.Feature`."""

from typing import Final

ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"
GROUP_VERSION: Final = "group.version"
KRAFT_VERSION: Final = "kraft.version"
METADATA_VERSION: Final = "metadata.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"
TRANSACTION_VERSION: Final = "transaction.version"
