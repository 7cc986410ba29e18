"""Which store a pipeline shares: given, by the policies, by the environment, or none."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.redis_servers import Server, running, until_up
from tests.waiting import until

from seawall import BreakerPolicy, ConfigurationError, Pipeline, Policies, RunPolicy, Shared
from seawall.policy.settings import SharedSettings
from seawall.testing import scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as found:
        yield found


def a_pipeline(**settings: object) -> Pipeline:
    policies = settings.pop("policies", None) or Policies(RunPolicy(rate="2/day"))
    return Pipeline([scripted("well", name="t")], policies=policies, **settings)  # type: ignore[arg-type]  # as given


def slow_policies(url: str, **policy: Any) -> Policies:
    """Policies of a store that may take its time, as a busy machine needs."""
    shared = SharedSettings(url=url, timeout_s=5)
    return Policies(RunPolicy(**(policy or {"rate": "2/day"})), shared=shared)


async def granted(pipeline: Pipeline, times: int) -> int:
    assert pipeline.shared is not None
    await until_up(pipeline.shared)
    return sum([not (await pipeline.call("t")).is_error for _ in range(times)])


async def test_pipelines_that_name_one_store_share_their_rates(server: Server) -> None:
    server.client.flushall()

    async with a_pipeline(shared=server.url) as one, a_pipeline(shared=server.url) as two:
        assert await granted(one, 1) + await granted(two, 3) == 2


async def test_a_store_that_was_given_stays_open(server: Server) -> None:
    server.client.flushall()
    async with Shared(server.url, prefix="mine", timeout_s=2) as shared:
        async with a_pipeline(shared=shared) as pipeline:
            await granted(pipeline, 1)

        assert shared.is_up
        assert server.keys() == ["mine:bucket:LIMITER/tool=t"]


async def test_a_policy_file_names_the_store_by_a_variable_of_the_environment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.client.flushall()
    file = tmp_path / "policy.toml"
    file.write_text(
        '[default]\nrate = "2/day"\n'
        '[shared]\nurl_env = "LIMITS_URL"\nreplicas = 3\ntimeout_s = "2s"\nprefix = "p"\n'
    )
    policies = Policies.load(file)
    with pytest.raises(ConfigurationError, match="no LIMITS_URL"):
        a_pipeline(policies=policies)
    monkeypatch.setenv("LIMITS_URL", server.url)

    async with a_pipeline(policies=policies) as pipeline:
        assert await granted(pipeline, 3) == 2
        assert pipeline.shared is not None
        assert pipeline.shared.buckets.replicas == 3
    assert server.keys() == ["p:bucket:LIMITER/tool=t"]


async def test_without_a_store_nothing_of_it_is_there() -> None:
    async with a_pipeline() as pipeline:
        await pipeline.call("t")

        assert pipeline.shared is None
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_runs_in_the_background_ends_with_the_pipeline(server: Server) -> None:
    policies = Policies()
    async with a_pipeline(shared=server.url, policies=policies) as pipeline:
        assert await granted(pipeline, 1) == 1
        assert len(asyncio.all_tasks()) > 1

    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_pipeline_goes_on_in_another_loop_and_from_call_sync(server: Server) -> None:
    server.client.flushall()
    pipeline = a_pipeline(policies=slow_policies(server.url))

    assert pipeline.call_sync("t").text == "well"
    assert pipeline.call_sync("t").text == "well"
    assert pipeline.call_sync("t").is_error

    asyncio.run(pipeline.aclose())

    assert pipeline.shared is not None
    assert not pipeline.shared.is_up


async def test_new_policies_keep_the_store(server: Server) -> None:
    server.client.flushall()
    async with a_pipeline(shared=server.url) as pipeline:
        assert await granted(pipeline, 2) == 2
        pipeline.replace_policies(Policies(RunPolicy(rate="3/day")))

        assert await granted(pipeline, 1) == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "redis://:secret@host"}, "url_env"),
        ({"url": "redis://host?password=secret"}, "url_env"),
        ({"url": "http://host"}, "no address"),
        ({"url": "redis://host", "url_env": "X"}, "beside"),
        ({"replicas": 0}, "replicas"),
    ],
)
def test_settings_that_cannot_work_are_told_without_secrets(
    settings: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said) as raised:
        SharedSettings(**settings)  # type: ignore[arg-type]  # wrong on purpose

    assert "secret" not in str(raised.value)


def test_something_else_is_refused_where_it_is_given() -> None:
    with pytest.raises(ConfigurationError, match="shared: must be a Shared"):
        a_pipeline(shared=5)


def circuits(server: Server, times: int) -> list[Pipeline]:
    breaker = BreakerPolicy(threshold=2, cooldown_s=1)
    made = []
    for _ in range(times):
        tool = scripted(OSError("1"), OSError("2"), "well", name="t")
        made.append(Pipeline([tool], policies=slow_policies(server.url, breaker=breaker)))
    return made


async def states(pipelines: list[Pipeline], wanted: str, within_s: float) -> None:
    await until(
        lambda: {pipeline.breakers.state("t") for pipeline in pipelines} == {wanted},
        within_s=within_s,
    )


async def test_a_circuit_opens_and_closes_in_all_processes(server: Server) -> None:
    server.client.flushall()
    one, two = pipelines = circuits(server, 2)
    async with one, two:
        await two.call("t")
        await one.call("t")
        await one.call("t")

        await states(pipelines, "open", within_s=1)
        refused = await two.call("t")
        assert refused.failure is not None
        assert refused.failure.reason == "circuit_open"
        await asyncio.sleep(1)
        assert (await one.call("t")).text == "well"
        await states(pipelines, "closed", within_s=1)


async def test_circuits_go_on_without_the_server_and_agree_when_it_is_back() -> None:
    with running() as server:
        one, two = pipelines = circuits(server, 2)
        async with one, two:
            await two.call("t")
            server.stop()
            await one.call("t")
            await one.call("t")
            assert one.breakers.state("t") == "open"
            await asyncio.sleep(1)
            assert (await one.call("t")).text == "well"
            assert one.breakers.state("t") == "closed"

            server.start()
            one.breakers.reset()
            await two.call("t")
            await states(pipelines, "open", within_s=5)


def test_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio.cluster", None)

    with pytest.raises(ImportError, match=r"pip install 'seawall\[redis\]'"):
        a_pipeline(shared="redis://host")
