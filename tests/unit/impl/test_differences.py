"""The sessions in docs/differences.md give what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import mmcache

PAGE = Path(__file__).parents[3] / "docs" / "differences.md"


def vllm_module() -> ModuleType | None:
    """vLLM's module where vLLM is installed in the release that the page is about."""
    try:
        if import_module("vllm.version").__version__ == "0.33.0":
            return import_module("vllm.v1.core.encoder_cache_manager")
    except ImportError:
        pass
    return None


def test_the_sessions_of_the_page() -> None:
    vllm = vllm_module()
    page = doctest.DocTestParser().get_doctest(
        PAGE.read_text("utf-8"), {"mmcache": mmcache, "vllm": vllm}, PAGE.name, str(PAGE), 0
    )
    shown = [e for e in page.examples if "(mmcache." in e.source]
    assert len(shown) == len([e for e in page.examples if "(vllm." in e.source]) == 13
    if vllm is None:
        page.examples = [e for e in page.examples if "(vllm." not in e.source]
    output: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(page, out=output.append)
    if failed:
        pytest.fail("".join(output))
