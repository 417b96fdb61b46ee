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
NOTHING_CHECKED = "mmcache_conformance: every vector was skipped, so nothing was checked"
_TEST = "::test_vector["


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    config = pluginmanager.get_plugin("pytestconfig")
    if config is None or not any(_is_ours(str(a)) for a in config.invocation_params.args):
        return
    group = parser.getgroup(PACKAGE, "conformance of an encoder cache")
    group.addoption(
        "--target",
        dest="mmcache_target",
        metavar="TARGET",
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
    group.addoption(
        "--expected",
        dest="mmcache_expected",
        metavar="FILE",
        default=None,
        help="the failures that are expected, as for mmcache-conformance run",
    )
    group.addoption(
        "--in-process",
        dest="mmcache_in_process",
        action="store_true",
        default=False,
        help="run a Python class in this process, as for mmcache-conformance run",
    )
    pluginmanager.register(_NothingChecked(), f"{PACKAGE}.nothing_checked")


def tell(config: pytest.Config, lines: list[str], could_not: bool) -> None:
    """Have something said at the end of the session, which ends with 3 if a target could not."""
    plugin = config.pluginmanager.get_plugin(f"{PACKAGE}.nothing_checked")
    if plugin is not None:
        plugin.lines, plugin.could_not = lines, could_not


class _NothingChecked:
    """A target of which nothing was checked has not passed: the exit code is that of `run`, 3."""

    def __init__(self) -> None:
        self.checked = self.skipped = 0
        self.lines: list[str] = []
        self.could_not = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if _TEST not in report.nodeid:
            return
        # What is expected to fail, and does, is reported as skipped, and was checked.
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped += 1
        elif report.when == "call":
            self.checked += 1

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        nothing = self.skipped and not self.checked and exitstatus == 0
        if nothing or (self.could_not and exitstatus in {0, 1}):
            session.exitstatus = 3

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.lines:
            terminalreporter.write_line(line)
        if self.skipped and not self.checked:
            terminalreporter.write_line(NOTHING_CHECKED, red=True)


def _is_ours(argument: str) -> bool:
    """Whether a command-line argument is the package, its test module, or a path to either."""
    name = argument.partition("::")[0]
    if name in {PACKAGE, f"{PACKAGE}.test_vectors"}:
        return True
    here = os.path.dirname(os.path.realpath(__file__))
    path = os.path.realpath(name)
    return path == here or path.startswith(here + os.sep)
