"""Executing one file without its imports: what works, what is refused, what stays untouched."""

from __future__ import annotations

import sys

import pytest

from mmcache_conformance.targets.vllm.stand_ins import StandInUsed, execute

FILE = b"""
from collections import OrderedDict
from typing import TYPE_CHECKING

import vllm.envs as envs
from absent_package.sub import thing
from vllm.config import VllmConfig
from vllm.logger import init_logger
from vllm.multimodal import MULTIMODAL_REGISTRY, MultiModalRegistry
from .kv import Other

if TYPE_CHECKING:
    from vllm.config import SchedulerConfig

logger = init_logger(__name__)


class Kept:
    def annotated(
        self,
        config: VllmConfig | None,
        other: "int" | Other,
        many: MultiModalRegistry["x"] = MULTIMODAL_REGISTRY,
    ) -> "SchedulerConfig":
        logger.warning_once("said once")
        logger.info("%s", self)
        return OrderedDict(a=1)

    def late(self):
        from vllm.utils import cdiv

        return cdiv(3, 2)
"""


def test_annotations_loggers_and_real_imports_work() -> None:
    kept = execute(FILE, "file.py", "unique_name")["Kept"]
    assert kept.__module__ == "unique_name"
    assert kept().annotated(None, None) == {"a": 1}


def test_sys_modules_stays_as_it_was() -> None:
    before = dict(sys.modules)
    kept = execute(FILE, "file.py", "unique_name")["Kept"]
    with pytest.raises(StandInUsed):
        kept().late()
    assert sys.modules == before
    assert "unique_name" not in sys.modules


def test_a_loaded_vllm_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", sys)
    names = execute(b"import vllm\nfrom vllm import path", "file.py", "name")
    assert names["vllm"] is not sys
    assert names["path"] is not sys.path
    assert sys.modules["vllm"] is sys


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("cdiv(1, 2)", "the file calls vllm.utils.cdiv"),
        ("@cdiv\ndef f(): pass", "the file calls vllm.utils.cdiv"),
        ("class Derived(cdiv): pass", "the file derives a class from vllm.utils.cdiv"),
    ],
)
def test_depending_on_a_stand_in_is_refused(line: str, reason: str) -> None:
    with pytest.raises(StandInUsed, match=reason):
        execute(f"from vllm.utils import cdiv\n{line}".encode(), "file.py", "name")


def test_a_missing_part_of_an_installed_package_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"collections\.absent"):
        execute(b"import collections.absent", "file.py", "name")


def test_its_own_errors_come_through() -> None:
    with pytest.raises(ZeroDivisionError):
        execute(b"1 / 0", "file.py", "name")
    with pytest.raises(SyntaxError):
        execute(b"def", "file.py", "name")
