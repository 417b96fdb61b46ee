"""The command `mmcache-conformance`: one module a command."""

from .app import cli, main

__all__ = ["cli", "main"]
