"""A class that ends its process, or never returns, costs the vectors that make that call."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mmcache import EncoderCacheManager
from mmcache_conformance.open import open_target
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.targets.vllm import wheel
from mmcache_conformance.verdicts.expected import ExpectedFailuresError, load_expected
from mmcache_conformance.verdicts.model import TargetReport
from mmcache_conformance.verdicts.run import run_target
from mmcache_vectors import document
from mmcache_vectors.manager import Reset, VectorError

SUITE = load_suite()


class ExitsInReset(EncoderCacheManager):
    made = False

    def __init__(self, cache_size: int) -> None:
        super().__init__(cache_size)
        self.made = True

    def reset(self) -> None:
        if self.made:
            os._exit(0)
        super().reset()


class HangsInReset(ExitsInReset):
    def reset(self) -> None:
        while self.made:
            time.sleep(1)
        super().reset()


class HangsWhenMade(EncoderCacheManager):
    def __init__(self, cache_size: int) -> None:
        while True:
            time.sleep(1)


def report(cls: type, timeout: float) -> TargetReport:
    resets = [v for v in SUITE if any(isinstance(s.call, Reset) for s in v.steps)][:1]
    others = [v for v in SUITE if not any(isinstance(s.call, Reset) for s in v.steps)][:5]
    target = open_target(f"{__name__}:{cls.__name__}", timeout=timeout)
    return run_target(target, (*resets, *others), stretch=False)


@pytest.mark.parametrize("cls", [ExitsInReset, HangsInReset])
def test_a_reset_that_does_not_return_costs_its_vectors_only(cls: type) -> None:
    found = report(cls, 1.5)
    assert found.reason is None
    assert [v.outcome for v in found.verdicts].count("error") == 1
    assert [v.outcome for v in found.verdicts].count("pass") == 5


def test_a_class_that_cannot_be_made_is_given_up_in_the_time_of_two_vectors() -> None:
    found = report(HangsWhenMade, 1)
    assert found.implementation is None
    assert "no reply within 1" in str(found.reason)


# --- what is read ------------------------------------------------------------------------------


def test_files_that_are_too_long_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "LARGEST", 100)
    (tmp_path / "a.json").write_bytes(b" " * 101)
    with pytest.raises(VectorError, match=r"a\.json: longer than 100 bytes"):
        load_suite(tmp_path)
    listed = tmp_path / "expected.toml"
    listed.write_bytes(b"#" * 101)
    with pytest.raises(ExpectedFailuresError, match="longer than 100 bytes"):
        load_expected(listed, SUITE)
    listed.write_bytes(b"#" * 100)
    with pytest.raises(ExpectedFailuresError, match="at "):
        load_expected(listed, SUITE)


def test_a_file_that_never_ends_is_refused() -> None:
    link = Path("/dev/zero")
    if not link.exists():
        pytest.skip("there is no such file here")
    with pytest.raises(document.DocumentError, match="longer than"):
        document.read(link)


def test_a_cached_file_without_a_digest_is_not_trusted(tmp_path: Path) -> None:
    wheel._keep({"a.py": b"x = 1"}, tmp_path)
    kept = tmp_path / "a.py"
    assert wheel._kept(kept) == b"x = 1"
    kept.write_bytes(b"x = 2")
    assert wheel._kept(kept) is None
    kept.with_name(kept.name + wheel._DIGEST).unlink()
    kept.write_bytes(b"x = 1")
    assert wheel._kept(kept) is None
