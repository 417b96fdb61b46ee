"""The seeds of the engine vectors: the check that CI runs sees what is wrong with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mmcache_spec.generate.engine_seeds import FILE, faults, main

Seeds = list[dict[str, Any]]


def kept() -> Seeds:
    found: Seeds = json.loads(FILE.read_text())
    return found


def test_those_that_are_kept_are_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(faults(kept())) == []
    assert main(["--check"]) == 0
    assert "are of this specification" in capsys.readouterr().out


def test_one_from_another_specification_is_noticed() -> None:
    seeds = kept()
    seeds[2]["spec_digest"] = "0" * 16
    assert list(faults(seeds)) == [f"{seeds[2]['name']}: made from another specification"]


def test_one_that_is_missing_is_noticed() -> None:
    assert "there should be seeds named phantom-entry-later-pass" in next(iter(faults(kept()[1:])))
