from __future__ import annotations

import re
from pathlib import Path

import pytest

from mmcache_conformance.suites.load import load_suite

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["running-conformance.md", "vector-format.md"])
def test_every_vector_that_is_named_exists(name: str) -> None:
    named = re.findall(r"\b[a-z]+(?:-[a-z]+)+-[0-9a-f]{8}\b", (DOCS / name).read_text())
    assert set(named) <= {vector.id for vector in load_suite()}
