"""Released vLLMs, read through the real package index.

Without a network these tests skip, with a warning in the summary; in CI (`CI` is set) they fail.
Which vectors each release must fail is tested elsewhere; here is how a release is reached.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mmcache_conformance.errors import TargetError
from mmcache_conformance.implementation import Kind
from mmcache_conformance.targets.protocol import CALLS, OBSERVABLES
from mmcache_conformance.targets.python import PythonTarget
from mmcache_conformance.targets.vllm.source import MANAGER_FILE, Source, find_source, load_classes
from mmcache_conformance.targets.vllm.wheel import IndexUnreachable, read_release

pytestmark = pytest.mark.network

Release = Callable[[str], Source]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not the user's: what is tested is the way through the index."""
    return tmp_path_factory.mktemp("releases")


@pytest.fixture
def release(cache: Path) -> Release:
    def read(version: str) -> Source:
        try:
            return find_source(version, cache=cache)
        except IndexUnreachable as error:
            if os.environ.get("CI"):
                pytest.fail(f"no network in CI: {error}")
            warnings.warn(f"NOT TESTED without a network: {error}", stacklevel=2)
            pytest.skip(str(error))

    return read


def _capabilities(source: Source) -> Mapping[Kind, tuple[str, ...]]:
    return PythonTarget("release", lambda: load_classes(source)).start().capabilities


def test_the_cache_needs_no_index(
    release: Release, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = release("0.33.0")
    assert b"class EncoderCacheManager" in source.content
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    again = read_release("0.33.0", (MANAGER_FILE,), cache=cache)
    assert again == {MANAGER_FILE: source.content}


@pytest.mark.parametrize("version", ["0.33.0", "0.28.0", "0.27.1"])
def test_present_releases_have_everything(version: str, release: Release) -> None:
    assert _capabilities(release(version)) == {
        "encoder_cache": (*CALLS, *OBSERVABLES),
        "encoder_decoder": (*CALLS, "num_free_slots"),
    }


def test_the_first_release_in_scope(release: Release) -> None:
    assert _capabilities(release("0.10.2")) == {
        "encoder_cache": (
            *(call for call in CALLS if call != "reset"),
            *(name for name in OBSERVABLES if name != "held"),
        )
    }


def test_a_release_that_is_out_of_scope(release: Release) -> None:
    source = release("0.8.5")
    with pytest.raises(TargetError, match=r"out of scope: the manager of vLLM 0\.8\.5 keeps"):
        load_classes(source)


def test_a_release_that_never_was(release: Release, cache: Path) -> None:
    release("0.33.0")
    with pytest.raises(TargetError, match=r"the package index has no wheel of vllm 0\.33\.999"):
        find_source("0.33.999", cache=cache)
