"""The options of `pytest --pyargs mmcache_conformance`.

pytest loads this module in every run of an environment that has the package, so it imports
nothing, and it adds its options only to a run that names the package.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PACKAGE = "mmcache_conformance"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    config = pluginmanager.get_plugin("pytestconfig")
    if config is None or not any(_is_ours(str(a)) for a in config.invocation_params.args):
        return
    group = parser.getgroup(PACKAGE, "conformance of an encoder cache")
    group.addoption(
        "--target",
        dest="mmcache_target",
        metavar="SPEC",
        default="reference",
        help="what to test, as for mmcache-conformance run (default: reference)",
    )
    group.addoption(
        "--vectors",
        dest="mmcache_vectors",
        metavar="DIR",
        default=None,
        help="take the vectors of this directory instead of those of the package",
    )


def _is_ours(argument: str) -> bool:
    """Whether a command-line argument is the package, its test module, or a path to either."""
    name = argument.partition("::")[0]
    if name in {PACKAGE, f"{PACKAGE}.test_vectors"}:
        return True
    here = os.path.dirname(os.path.realpath(__file__))
    path = os.path.realpath(name)
    return path == here or path.startswith(here + os.sep)
