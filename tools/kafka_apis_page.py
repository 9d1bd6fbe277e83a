"""Write the page of the served APIs: `python -m tools.kafka_apis_page` writes docs/reference/apis.md.

Versions come from the API table and from the facts about Kafka's release, the reasons why an API is not served
from the known differences (docs/reference/differences.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_sim_integration.comparison.differences import read_known_differences, reason_for

from broker_sim.handlers.api_table import ApiTable
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.release import DEFAULT_RELEASE, find_release, releases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.handlers.api_table import ApiSpec

TARGET: Final = Path(__file__).parents[1] / "docs" / "reference" / "apis.md"
RELEASE: Final = DEFAULT_RELEASE
SCENARIO: Final = "the_advertised_apis_and_features_are_kafkas"
"""Scenario whose known differences name the missing APIs, by the field `api_keys.KEY`."""
STEP: Final = "version 4"

INTRODUCTION: Final = f"""\
# Supported APIs

Made by `python -m tools.kafka_apis_page` from `broker_sim/handlers/api_table.py`; do not edit.

A cluster answers ApiVersions with this table, so clients choose a version that is served. With
`broker-sim run --as-version 3.7` or `Cluster(as_version="3.7")` it serves the versions of an older
release ({next(iter(releases()))} to {RELEASE}) only. A version or an API that is not in the table is
answered as Kafka answers it. Which client methods work with them is tested with three versions of each
client; see [Clients and features](clients.md).

"""
SERVED_HEAD: Final = f"""\
## Served

| key | API | versions | in Kafka {RELEASE} | notes |
|---:|---|---|---|---|
"""
REFUSED_HEAD: Final = f"""
## Advertised and refused

Each request is answered at once with an error that clients do not retry;
[Differences](differences.md#what-is-not-served) says which and why.

| key | API | versions | in Kafka {RELEASE} |
|---:|---|---|---|
"""
MISSING_HEAD: Final = f"""
## Not served

| key | API | in Kafka {RELEASE} | belongs to |
|---:|---|---|---|
"""
ONLY_WITH_PLUGIN: Final = "as by Kafka, only if `metric.reporters` names a class that takes clients' metrics"
OLDER_HEAD: Final = """
## Versions of older releases

Kafka 4 has removed them (KIP-896). With `as_version` of a release that has them they are served, but for
those with "no", of which a request closes the connection, as an unknown version does. librdkafka with
`broker.version.fallback=0.9.0.1`, sarama with a `Version` before 0.11 and kafka-python 1.4 with an `api_version` below
`(0, 11, 0)`, such as `(0, 11)`, use such ones: name a newer version there.

| key | API | versions | in Kafka | served |
|---:|---|---|---|---|
"""
_FORMATS: Final = "record formats before 0.11"
_ZOOKEEPER: Final = "offsets in ZooKeeper, or with timestamps"
WHY_NOT_SERVED: Final = {
    ApiKey.PRODUCE: _FORMATS,
    ApiKey.FETCH: _FORMATS,
    ApiKey.LIST_OFFSETS: "offsets of segments instead of one offset",
    ApiKey.OFFSET_COMMIT: _ZOOKEEPER,
    ApiKey.OFFSET_FETCH: _ZOOKEEPER,
    ApiKey.DESCRIBE_CONFIGS: "a field that Kafka's definitions no longer have",
    ApiKey.WRITE_TXN_MARKERS: "between brokers only",
}
NOTES: Final = {
    ApiKey.PRODUCE: "0 to 2 are advertised, as by Kafka, for librdkafka",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: ONLY_WITH_PLUGIN,
    ApiKey.PUSH_TELEMETRY: ONLY_WITH_PLUGIN,
}


def page() -> str:
    """Return the whole page."""
    table = ApiTable(client_metrics=True)
    served = [spec for key in ApiKey if (spec := table.get(key)) is not None]
    refused = [spec for spec in served if _is_refused(spec)]
    parts = [INTRODUCTION, SERVED_HEAD]
    parts += (_row(spec, NOTES.get(spec.key, "")) for spec in served if spec not in refused)
    if refused:
        parts += [REFUSED_HEAD, *(_row(spec) for spec in refused)]
    keys = {spec.key for spec in served}
    missing = list(_missing_rows(keys))
    if missing:
        parts += [MISSING_HEAD, *missing]
    return "".join([*parts, OLDER_HEAD, *_older_rows(keys)])


def _is_refused(spec: ApiSpec) -> bool:
    return spec.handler.__module__.endswith(".not_served")


def _row(spec: ApiSpec, *notes: str) -> str:
    here = _versions((spec.min_version, spec.max_version))
    there = _versions(find_release(RELEASE).apis[spec.key])
    return _line(spec.key, here, there, *notes)


def _missing_rows(served: set[ApiKey]) -> Iterator[str]:
    known = read_known_differences()
    for key, versions in sorted(find_release(RELEASE).apis.items()):
        if key not in served:
            reason = reason_for(known, SCENARIO, STEP, f"api_keys.{int(key)}.min_version", "None")
            assert reason is not None, f"no row says why {key.api_name} is not served"
            why = reason.removeprefix("Not served: ").removesuffix(".")
            yield _line(key, _versions(versions), why)


def _older_rows(served: set[ApiKey]) -> Iterator[str]:
    """Yield the versions of each served API that exist in older releases only, and whether they are served."""
    for key in sorted(served):
        having = [release for release in releases().values() if key in release.apis]
        lowest_now = find_release(RELEASE).apis[key][0]
        lowest = min(release.apis[key][0] for release in having)
        if lowest == lowest_now:
            continue
        last = [release.name for release in having if release.apis[key][0] == lowest][-1]
        spec = ApiTable(find_release(last)).get(key)
        is_served = spec is not None and spec.min_version == lowest
        removed = _versions((lowest, lowest_now - 1))
        yield _line(key, removed, f"to {last}", "yes" if is_served else f"no: {WHY_NOT_SERVED[key]}")


def _line(key: ApiKey, *cells: str) -> str:
    return f"| {' | '.join((str(int(key)), key.api_name, *cells))} |\n"


def _versions(versions: tuple[int, int]) -> str:
    lowest, highest = versions
    return str(lowest) if lowest == highest else f"{lowest} to {highest}"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
