"""Which requests to the control port are carried out, by their headers."""

import pytest

from broker_sim.control.guard import PAGE_TOKEN_HEADER, Guard, RefusedRequestError

JSON = {"Host": "127.0.0.1:8090", "Content-Type": "application/json"}


def refusal(guard, method, headers, **facts):
    """Return the status of the refusal, None if there is none."""
    try:
        guard.admit(method, headers, **facts)
    except RefusedRequestError as error:
        return error.status
    return None


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8090", "localhost:1", "LOCALHOST", "[::1]:8090", "sim.test:80", "10.0.0.5"]
)
def test_known_hosts_may_be_called_on_any_port(host):
    guard = Guard("10.0.0.5", ["sim.test"])
    assert refusal(guard, "GET", {"Host": host}) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "127.0.0.1.evil.test:8090",
        "",
        "[::1",
        "10.0.0.6",
        "localhost@evil.test",
        "evil.test@127.0.0.1",
        "127.0.0.1/evil.test",
        "127.0.0.1?evil.test",
        "127.0.0.1#evil.test",
        "127.0.0.1\\@evil.test",
        "127.0.0.1 evil.test",
    ],
)
def test_foreign_host_is_refused_for_reading_too(host):
    guard = Guard("10.0.0.5", ["sim.test"])
    assert refusal(guard, "GET", {"Host": host}) == 403
    assert refusal(guard, "POST", {**JSON, "Host": host}) == 403


def test_port_bound_to_all_addresses_takes_addresses_but_no_foreign_names():
    for host in ("0.0.0.0", "::"):
        guard = Guard(host)
        assert refusal(guard, "GET", {"Host": "192.168.1.9:8090"}) is None
        assert refusal(guard, "GET", {"Host": "evil.test:8090"}) == 403


def test_address_that_the_connection_came_to_is_known():
    headers = {"Host": "10.1.2.3:8090"}
    headers["Authorization"] = "Bearer secret"
    guard = Guard("sim.test", token="secret")
    assert refusal(guard, "GET", headers, local_address="10.1.2.3") is None
    assert refusal(guard, "GET", headers, local_address="10.1.2.4") == 403


@pytest.mark.parametrize(
    ("local_address", "status"),
    [
        ("127.0.0.1", None),
        ("127.0.0.2", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("192.168.1.9", 401),
        ("::ffff:192.168.1.9", 401),
        ("2001:db8::1", 401),
        ("", 401),
    ],
)
def test_without_a_token_only_loopback_is_served(local_address, status):
    headers = {**JSON, "Host": "127.0.0.1:8090"}
    for method in ("GET", "POST"):
        assert refusal(Guard("0.0.0.0"), method, headers, local_address=local_address) == status
        right = {**headers, "Authorization": "Bearer secret"}
        guard = Guard("0.0.0.0", token="secret")
        assert refusal(guard, method, right, local_address=local_address) is None
        assert refusal(guard, method, headers, local_address=local_address) == 401


@pytest.mark.parametrize("origin", ["http://evil.test", "null", "http://127.0.0.1:8091", "https://127.0.0.1:8090"])
def test_pages_of_other_origins_cannot_write(origin):
    assert refusal(Guard("127.0.0.1"), "POST", {**JSON, "Origin": origin}) == 403
    assert refusal(Guard("127.0.0.1"), "DELETE", {**JSON, "Origin": origin}) == 403


def test_the_ports_own_page_may_write_with_its_token():
    guard = Guard("127.0.0.1")
    own = {**JSON, "Origin": "http://127.0.0.1:8090", PAGE_TOKEN_HEADER: guard.page_token}
    assert refusal(guard, "POST", own) is None
    assert refusal(guard, "POST", {**own, PAGE_TOKEN_HEADER: "an older one"}) == 403


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_body_that_is_not_json_is_refused(content_type):
    headers = {"Host": "127.0.0.1", "Content-Type": content_type}
    assert refusal(Guard("127.0.0.1"), "POST", headers, has_body=True) == 415
    assert refusal(Guard("127.0.0.1"), "POST", headers) == 415


def test_json_and_no_body_at_all_are_taken():
    guard = Guard("127.0.0.1")
    json_type = "Application/JSON; charset=utf-8"
    assert refusal(guard, "POST", {**JSON, "Content-Type": json_type}, has_body=True) is None
    assert refusal(guard, "POST", {"Host": "127.0.0.1"}) is None
    assert refusal(guard, "POST", {"Host": "127.0.0.1"}, has_body=True) == 415


@pytest.mark.parametrize(
    ("authorization", "status"),
    [("Bearer secret", None), ("bearer secret", None), ("Bearer secrets", 401), ("Bearer ", 401),
     ("Basic secret", 401), ("secret", 401), ("", 401), ("Bearer s\xe9cret", 401), ("Bearer \udce9", 401)],
)  # fmt: skip
def test_token_is_wanted_for_reading_too(authorization, status):
    guard = Guard("127.0.0.1", token="secret")
    for method in ("GET", "POST"):
        assert refusal(guard, method, {**JSON, "Authorization": authorization}) == status


@pytest.mark.parametrize("twice", ["Host", "ORIGIN", "Authorization", "content-type"])
def test_header_that_decides_is_there_once(twice):
    guard = Guard("127.0.0.1")
    guard.check_names(["Accept", "accept", twice])
    with pytest.raises(RefusedRequestError, match="is repeated") as refused:
        guard.check_names([twice, "Accept", twice.lower()])
    assert refused.value.status == 400
