"""Configurations of quotas: over how much time the rates of clients are measured.

Mirrors `QuotaConfig`, with the defaults of Kafka 4.3.
"""

from dataclasses import dataclass

from broker_sim.config.definition import INT, at_least, declare


@dataclass(frozen=True, kw_only=True)
class QuotaConfigs:
    """The windows of rates; each has a number of samples and the length of one."""

    quota_window_num: int = declare(
        INT, 11, "Samples of a client's rate, the running one included.", at_least(1)
    )
    quota_window_size_seconds: int = declare(
        INT, 1, "Length of a sample of a client's rate.", at_least(1)
    )
    controller_quota_window_num: int = declare(
        INT, 11, "Samples of a client's changes of topics.", at_least(1)
    )
    controller_quota_window_size_seconds: int = declare(
        INT, 1, "Length of a sample of a client's changes of topics.", at_least(1)
    )
