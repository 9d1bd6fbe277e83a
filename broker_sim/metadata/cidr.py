"""Hosts of ACLs with a prefix length, such as `10.0.0.0/8` (KIP-1276); mirrors `CidrUtils`.

Messages are those of the commons-net library in Kafka, because clients see them.
"""

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

_IPV4: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_MOST_IPV4_BITS: Final = 32
_MOST_IPV6_BITS: Final = 128
_MOST_OF_A_BYTE: Final = 255


def cidr_problem(host: str) -> str | None:
    """Return the reason why a host with a slash is no range of addresses, None if it is one."""
    return _ipv6_problem(host) if ":" in host else _ipv4_problem(host)


def _ipv4_problem(host: str) -> str | None:
    parts = _IPV4.fullmatch(host)
    if parts is None:
        return f"Could not parse [{host}]"
    *numbers, bits = map(int, parts.groups())
    for number, most in (*((number, _MOST_OF_A_BYTE) for number in numbers), (bits, _MOST_IPV4_BITS)):
        if number > most:
            return f"Value [{number}] not in range [0,{most}]"
    return None


def _ipv6_problem(host: str) -> str | None:
    address, _, bits = host.partition("/")
    try:
        length = int(bits)
    except ValueError:
        return f"Could not parse [{host}] - invalid prefix length"
    if not 0 <= length <= _MOST_IPV6_BITS:
        return f"Could not parse [{host}] - prefix length must be between 0 and {_MOST_IPV6_BITS}"
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except AddressValueError:
        return f"Could not parse [{address}]"
    return None if parsed.ipv4_mapped is None else f"Could not parse [{address}] - not an IPv6 address"


@lru_cache(maxsize=1024)
def is_in_range(host: str, client: str) -> bool:
    """Return whether the address of a client is in the range that the host of an ACL names, if it names one."""
    if "/" not in host or cidr_problem(host) is not None:
        return False
    address, _, bits = host.partition("/")
    network = ip_network(f"{address.partition('%')[0]}/{int(bits)}", strict=False)
    try:
        client_address = ip_address(client.partition("%")[0])
    except ValueError:
        return False
    if isinstance(client_address, IPv4Address):
        return isinstance(network, IPv4Network) and client_address in network
    return isinstance(network, IPv6Network) and client_address in network
