"""Campaigns: processes here, a cluster elsewhere, and no worker with other sources."""

from __future__ import annotations

import sys
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import pytest

from mmcache_spec.campaign import ClusterError, source_digest, workers


def double(number: int) -> int:
    print("this is no output")
    return 2 * number


def test_processes_do_the_work_and_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with workers(jobs=2) as executor:
        assert list(executor.map(double, range(5))) == [0, 2, 4, 6, 8]
    assert capfd.readouterr().out == ""


def test_an_error_of_the_caller_passes() -> None:
    with pytest.raises(LookupError), workers(jobs=1):
        raise LookupError


class Client:
    """As much of Dask's client as is used; what its workers say is set by a test."""

    digests: dict[str, str]

    def __init__(self, address: str, timeout: float) -> None:
        if address == "tcp://nowhere":
            raise OSError("Timed out\nand more")

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        return

    def run(self, function: Any) -> dict[str, str]:
        return self.digests

    def get_executor(self, pure: bool) -> Executor:
        assert not pure
        return ThreadPoolExecutor(1)


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> type[Client]:
    module = ModuleType("distributed")
    monkeypatch.setattr(module, "Client", Client, raising=False)
    monkeypatch.setitem(sys.modules, "distributed", module)
    monkeypatch.setattr(Client, "digests", {"one": source_digest()}, raising=False)
    return Client


def test_a_cluster_does_the_work(dask: type[Client]) -> None:
    with workers("tcp://somewhere") as executor:
        assert executor.submit(double, 2).result() == 4


@pytest.mark.parametrize(
    ("digests", "reason"),
    [({}, "has no workers"), ({"one": source_digest(), "two": "other"}, "two has other sources")],
)
def test_a_cluster_that_cannot_be_believed(
    dask: type[Client], monkeypatch: pytest.MonkeyPatch, digests: dict[str, str], reason: str
) -> None:
    monkeypatch.setattr(dask, "digests", digests)
    with pytest.raises(ClusterError, match=reason), workers("tcp://somewhere"):
        pass


def test_no_cluster_there(dask: type[Client]) -> None:
    reason = r"^no Dask cluster at tcp://nowhere: OSError: Timed out$"
    with pytest.raises(ClusterError, match=reason), workers("tcp://nowhere"):
        pass


def test_no_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match="pip install"), workers("tcp://somewhere"):
        pass


def test_the_digest_is_of_every_source(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    files = [tmp_path / "a.py", tmp_path / "room" / "b.py"]
    for file in files:
        file.write_text("x = 1\n")
    digests = [source_digest([tmp_path])]
    for file in files:
        file.write_text("x = 2\n")
        digests.append(source_digest([tmp_path]))
    files[1].rename(tmp_path / "c.py")
    digests.append(source_digest([tmp_path]))
    assert len(set(digests)) == len(digests)
    assert source_digest() == source_digest() != source_digest([])
