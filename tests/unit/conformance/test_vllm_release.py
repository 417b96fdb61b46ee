"""Reading parts of a wheel through a package index; the index here is a small local server."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pypi_simple
import pytest

from mmcache_conformance.errors import TargetError
from mmcache_conformance.targets.vllm.index import IndexSettings, pip_settings
from mmcache_conformance.targets.vllm.wheel import IndexUnreachable, is_version, read_release

INSIDE = "vllm/v1/core/encoder_cache_manager.py"
CONTENT = b"class EncoderCacheManager: ...\n"


def _wheel() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("vllm/huge.so", b"\0" * 1_000_000)
        wheel.writestr(INSIDE, CONTENT)
    return buffer.getvalue()


class Index:
    """What the server knows, and what it was asked for."""

    def __init__(self) -> None:
        self.wheel = _wheel()
        self.serves_ranges = True
        self.serves_suffixes = True
        self.sent = 0
        self.requests: list[str] = []
        self.url = ""

    def page(self) -> bytes:
        name = "vllm-1.2.3-cp38-abi3-manylinux_2_28_x86_64.whl"
        sha256 = hashlib.sha256(self.wheel).hexdigest()
        wheels = [
            {"filename": n, "url": f"/files/{n}", "hashes": {"sha256": sha256}}
            for n in (name, name.replace("1.2.3", "1.2.4").replace("x86_64", "aarch64"))
        ]
        source = {"filename": "vllm-1.0.0.tar.gz", "url": "/files/vllm-1.0.0.tar.gz", "hashes": {}}
        files = [*wheels, source]
        return json.dumps({"meta": {"api-version": "1.0"}, "name": "vllm", "files": files}).encode()


class Handler(BaseHTTPRequestHandler):
    index: Index

    def do_GET(self) -> None:
        self.index.requests.append(self.path)
        if self.path.startswith("/files/"):
            self._send_file()
        elif self.path == "/simple/vllm/":
            content = self.index.page()
            self.send_response(200)
            self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        else:
            self.send_error(404)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.index.wheel)))
        self.end_headers()

    def _send_file(self) -> None:
        wheel = self.index.wheel
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked is None or not self.index.serves_ranges:
            self.send_response(200)
            self.send_header("Content-Length", str(len(wheel)))
            self.end_headers()
            return
        if not asked[1] and not self.index.serves_suffixes:
            self.send_error(416)
            return
        first = int(asked[1]) if asked[1] else max(0, len(wheel) - int(asked[2]))
        last = min(int(asked[2]), len(wheel) - 1) if asked[1] and asked[2] else len(wheel) - 1
        part = wheel[first : last + 1]
        self.index.sent += len(part)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(wheel)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def pip_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """A package index that pip is configured to use."""
    served = Index()
    handler = type("HandlerOfThisTest", (Handler,), {"index": served})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    served.url = f"http://127.0.0.1:{server.server_port}/simple"
    monkeypatch.setenv("PIP_INDEX_URL", served.url)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield served
    server.shutdown()
    server.server_close()


@pytest.fixture
def index(pip_index: Index, monkeypatch: pytest.MonkeyPatch) -> Index:
    """The same, and pip is not asked: to start it takes longer than all else."""
    monkeypatch.setattr(
        "mmcache_conformance.targets.vllm.wheel.pip_settings",
        lambda: IndexSettings((pip_index.url,)),
    )
    return pip_index


def test_only_parts_of_the_wheel_are_transferred(pip_index: Index, tmp_path: Path) -> None:
    assert read_release("1.2.3", (INSIDE,), cache=tmp_path) == {INSIDE: CONTENT}
    assert 0 < pip_index.sent < len(pip_index.wheel) / 5


def test_the_cache_answers_without_the_index(index: Index, tmp_path: Path) -> None:
    read_release("1.2.3", (INSIDE,), cache=tmp_path)
    key = hashlib.sha256(index.wheel).hexdigest()[:16]
    assert (tmp_path / "vllm" / "1.2.3" / f"sha256-{key}" / INSIDE).read_bytes() == CONTENT
    index.requests.clear()
    assert read_release("v1.2.3", (INSIDE,), cache=tmp_path) == {INSIDE: CONTENT}
    assert index.requests == []


def test_any_platform_will_do(index: Index, tmp_path: Path) -> None:
    assert read_release("1.2.4", (INSIDE,), cache=tmp_path) == {INSIDE: CONTENT}


def test_a_server_without_suffix_ranges(index: Index, tmp_path: Path) -> None:
    index.serves_suffixes = False
    assert read_release("1.2.3", (INSIDE,), cache=tmp_path) == {INSIDE: CONTENT}


def test_a_server_without_ranges(index: Index, tmp_path: Path) -> None:
    index.serves_ranges = False
    with pytest.raises(TargetError, match=r"does not give out parts .*RangeNotSupported"):
        read_release("1.2.3", (INSIDE,), cache=tmp_path)


def test_a_cache_that_cannot_be_written_is_done_without(index: Index, tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    assert read_release("1.2.3", (INSIDE,), cache=blocked) == {INSIDE: CONTENT}


@pytest.mark.parametrize(
    ("version", "files", "reason"),
    [
        ("1.2.9", (INSIDE,), r"has no wheel of vllm 1\.2\.9; it has 1\.2\.4, 1\.2\.3"),
        ("1.0.0", (INSIDE,), r"has no wheel of vllm 1\.0\.0"),
        ("1.2.3", ("vllm/absent.py",), r"vllm 1\.2\.3 has no vllm/absent\.py"),
    ],
)
def test_not_there(
    version: str, files: tuple[str, ...], reason: str, index: Index, tmp_path: Path
) -> None:
    with pytest.raises(TargetError, match=reason):
        read_release(version, files, cache=tmp_path)


def test_no_such_project(pip_index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", pip_index.url + "/other")
    with pytest.raises(TargetError, match="the package index has no wheel of vllm"):
        read_release("1.2.3", (INSIDE,), cache=tmp_path)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", pip_index.url)
    assert read_release("1.2.3", (INSIDE,), cache=tmp_path) == {INSIDE: CONTENT}


def test_unreachable_says_what_to_do_and_no_address(
    pip_index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://someone:secret@127.0.0.1:9/simple")
    with pytest.raises(IndexUnreachable) as caught:
        read_release("1.2.3", (INSIDE,), cache=tmp_path)
    text = str(caught.value)
    assert "not in the cache, and the package index did not answer" in text
    assert "pip download" in text
    assert "secret" not in text
    assert "127.0.0.1" not in text


def test_a_broken_wheel(index: Index, tmp_path: Path) -> None:
    index.wheel = b"not a zip file" * 10_000
    with pytest.raises(TargetError, match="does not give out parts of the wheel"):
        read_release("1.2.3", (INSIDE,), cache=tmp_path)


class TestPipSettings:
    def test_nothing_is_configured(self) -> None:
        settings = pip_settings(lambda: "")
        assert settings.urls == (pypi_simple.PYPI_SIMPLE_ENDPOINT,)
        assert settings.certificates is None

    def test_the_nearest_scope_wins(self) -> None:
        listed = (
            ":env:.index-url='https://env.example/simple'\n"
            "global.cert='/global.pem'\n"
            "global.index-url='https://global.example/simple'\n"
            "install.index-url='https://install.example/simple'\n"
            "wheel.cert='/wheel.pem'\n"
        )
        settings = pip_settings(lambda: listed)
        assert settings.urls == ("https://env.example/simple",)
        assert settings.certificates == "/global.pem"

    def test_further_indexes_come_after(self) -> None:
        listed = (
            "global.extra-index-url='\\nhttps://a.example\\nfile:///wheels https://b.example'\n"
            "global.index-url=https://first.example\n"
        )
        assert pip_settings(lambda: listed).urls == (
            "https://first.example",
            "https://a.example",
            "https://b.example",
        )

    def test_without_pip_its_environment_variables_count(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        monkeypatch.setenv("PATH", "")
        monkeypatch.setenv("PIP_INDEX_URL", "https://env.example/simple")
        monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
        assert pip_settings().urls == ("https://env.example/simple",)

    def test_pip_is_asked_once_for_an_environment_and_again_for_another(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []

        def listed(*words: object, **given: object) -> subprocess.CompletedProcess[str]:
            asked.append(os.environ["PIP_INDEX_URL"])
            line = f":env:.index-url='{asked[-1]}'\n"
            return subprocess.CompletedProcess([], 0, line, "")

        monkeypatch.setattr(subprocess, "run", listed)
        urls = [f"https://{name}.example/simple" for name in ("one", "one", "two", "one")]
        for url in urls:
            monkeypatch.setenv("PIP_INDEX_URL", url)
            assert pip_settings().urls[0] == url
        assert asked == urls[1:]

    def test_no_index(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        assert pip_settings(lambda: ":env:.no-index='1'").urls == ()
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        with pytest.raises(TargetError, match="no package index over HTTP"):
            read_release("1.2.3", (INSIDE,), cache=tmp_path)


@pytest.mark.parametrize("text", ["0.33.0", "v0.8.5", "0.10.1.1", "0.30.0rc1", "1.0"])
def test_a_version(text: str) -> None:
    assert is_version(text)


@pytest.mark.parametrize("text", ["", "main", "1", "../0.33.0", "0.33.0/..", "0.33.0 ", "latest"])
def test_not_a_version(text: str) -> None:
    assert not is_version(text)
