"""Where a vLLM's manager file may be, and which are in scope."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from mmcache_conformance.errors import TargetError
from mmcache_conformance.open import open_target
from mmcache_conformance.targets.protocol import CALLS
from mmcache_conformance.targets.vllm.source import MANAGER_FILE, Source, find_source, load_classes

MANAGERS = Path(__file__).parents[2] / "support" / "plain_managers.py"

FILE = (
    MANAGERS.read_bytes()
    .replace(b"import Any\n", b"import Any\n\nfrom vllm.v1.request import Request\n")
    .replace(b"class Manager:", b"class EncoderCacheManager:")
    .replace(b"(Manager)", b"(EncoderCacheManager)")
    + b"\n\nclass EncoderDecoderCacheManager(EncoderDecoder):\n    request_cached_ids = None\n"
)


def _checkout(directory: Path) -> Path:
    file = directory / MANAGER_FILE
    file.parent.mkdir(parents=True)
    file.write_bytes(FILE)
    return file


def _wheel(directory: Path, name: str = MANAGER_FILE) -> Path:
    path = directory / "vllm-9.8.7-cp38-abi3-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(name, FILE)
    return path


@pytest.mark.parametrize("inside", [".", "vllm", "vllm/v1", "vllm/v1/core", MANAGER_FILE])
def test_a_checkout_and_every_directory_of_it(inside: str, tmp_path: Path) -> None:
    _checkout(tmp_path)
    assert find_source(str(tmp_path / inside)).content == FILE


def test_a_wheel(tmp_path: Path) -> None:
    source = find_source(str(_wheel(tmp_path)))
    assert (source.content, source.version, source.name) == (FILE, "9.8.7", "vLLM 9.8.7")


@pytest.mark.parametrize("content", [b"", b"PK\3\4 and then nothing"])
def test_a_broken_wheel(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "vllm-1.0-py3-none-any.whl"
    path.write_bytes(content)
    with pytest.raises(TargetError, match="not a zip file"):
        find_source(str(path))


def test_a_wheel_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"no vllm/v1/core/encoder_cache_manager\.py"):
        find_source(str(_wheel(tmp_path, "other.py")))


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"no vllm/v1/core/encoder_cache_manager\.py"):
        find_source(str(tmp_path))


def test_the_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _checkout(tmp_path)
    (tmp_path / "vllm" / "__init__.py").write_text("raise RuntimeError('was imported')")
    metadata = tmp_path / "vllm-5.4.3.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 5.4.3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    source = find_source(None)
    assert (source.content, source.version) == (FILE, "5.4.3")
    assert "vllm" not in sys.modules


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(TargetError, match="vLLM is not installed here; name a release"):
        find_source(None)


def test_loading_leaves_no_trace(tmp_path: Path) -> None:
    file = _checkout(tmp_path)
    target = open_target(f"vllm:{file}")
    before = dict(sys.modules)
    implementation = target.start()
    assert sys.modules == before
    assert implementation.capabilities["encoder_cache"][: len(CALLS)] == CALLS
    assert set(implementation.capabilities) == {"encoder_cache", "encoder_decoder"}


def _source(content: bytes) -> Source:
    return Source("vLLM 0.0.1", "manager.py", "0.0.1", content)


def test_held_inputs_only_where_they_are_kept_by_position() -> None:
    assert load_classes(_source(FILE)).lacks == frozenset()
    older = FILE.replace(b"request_cached_ids", b"something_else")
    assert load_classes(_source(older)).lacks == {"held"}


def test_without_the_encoder_decoder_manager() -> None:
    older = FILE.replace(b"class EncoderDecoderCacheManager", b"class Another")
    assert load_classes(_source(older)).encoder_decoder is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x = 1", r"manager\.py has no class EncoderCacheManager"),
        (b"class EncoderCacheManager:\n    pass", "out of scope: the manager of vLLM 0.0.1 keeps"),
        (b"1 / 0", r"manager\.py cannot be loaded: ZeroDivisionError.*\(manager\.py, line 1\)"),
        (b"class", r"manager\.py cannot be loaded: SyntaxError"),
        (
            b"from vllm.core import Base\nclass EncoderCacheManager(Base): pass",
            r"cannot be loaded: StandInUsed: the file derives a class from vllm\.core\.Base",
        ),
    ],
)
def test_cannot_be_loaded(content: bytes, reason: str) -> None:
    with pytest.raises(TargetError, match=reason):
        load_classes(_source(content))
