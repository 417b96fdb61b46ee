"""The command `mmcache-spec`: one module a command."""

from .app import main

__all__ = ["main"]
