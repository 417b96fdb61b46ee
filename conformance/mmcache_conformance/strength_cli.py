"""The commands that go beyond single vectors, for the command line to list."""

from __future__ import annotations

from .check_cli import check
from .exhaust_cli import exhaust

__all__ = ["commands"]

commands = (exhaust, check)
