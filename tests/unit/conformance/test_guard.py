"""A command that executes foreign code in its own process knows that it does."""

from __future__ import annotations

import pytest

from mmcache_conformance.cli.guard import executes_foreign_code


@pytest.mark.parametrize(
    "line",
    [
        "exhaust a:B",
        "run a:B --in-process",
        "run vllm-scheduler:v2",
        "run vllm-live:withdraw",
        "run mmcache:EncoderCacheManager --vllm-config a:make",
        "smoke a:B --vllm-config=a:make",
    ],
)
def test_code_in_the_process_of_the_command(line: str) -> None:
    assert executes_foreign_code(line.split())


def test_a_configuration_of_the_environment_is_code_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not executes_foreign_code(["run", "mmcache:EncoderCacheManager"])
    monkeypatch.setenv("MMCACHE_VLLM_CONFIG", "a:make")
    assert executes_foreign_code(["run", "mmcache:EncoderCacheManager"])


@pytest.mark.parametrize("line", ["run reference", "run a:B", "run cmd:./driver", "list"])
def test_no_code_in_the_process_of_the_command(line: str) -> None:
    assert not executes_foreign_code(line.split())
