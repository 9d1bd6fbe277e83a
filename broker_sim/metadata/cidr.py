"""Address ranges as ACL hosts, such as `10.0.0.0/8` (KIP-1276); mirrors `CidrUtils`.

Messages are those of Kafka's commons-net library, because clients see them.
"""

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

_IPV4: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_MAX_IPV4_BITS: Final = 32
_MAX_IPV6_BITS: Final = 128
_MAX_BYTE: Final = 255


def cidr_problem(host: str) -> str | None:
    """Return the error for a host with a slash that is not a valid range, None if it is valid."""
    return _ipv6_problem(host) if ":" in host else _ipv4_problem(host)


def _ipv4_problem(host: str) -> str | None:
    parts = _IPV4.fullmatch(host)
    if parts is None:
        return f"Could not parse [{host}]"
    *numbers, bits = map(int, parts.groups())
    for number, maximum in (*((number, _MAX_BYTE) for number in numbers), (bits, _MAX_IPV4_BITS)):
        if number > maximum:
            return f"Value [{number}] not in range [0,{maximum}]"
    return None


def _ipv6_problem(host: str) -> str | None:
    address, _, bits = host.partition("/")
    try:
        length = int(bits)
    except ValueError:
        return f"Could not parse [{host}] - invalid prefix length"
    if not 0 <= length <= _MAX_IPV6_BITS:
        return f"Could not parse [{host}] - prefix length must be between 0 and {_MAX_IPV6_BITS}"
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except AddressValueError:
        return f"Could not parse [{address}]"
    return None if parsed.ipv4_mapped is None else f"Could not parse [{address}] - not an IPv6 address"


@lru_cache(maxsize=1024)
def is_in_range(host: str, client: str) -> bool:
    """Return whether a client's address is in the range of an ACL host; False if the host is not a range."""
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
