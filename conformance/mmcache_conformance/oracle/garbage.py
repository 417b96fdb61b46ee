"""Long searches without the collector of garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_collections"]


@contextmanager
def without_collections() -> Iterator[None]:
    """No collector of cycles meanwhile; afterwards it is as it was before.

    Nothing that a search keeps has cycles, there is a lot of it, and the collector would look
    through all of it again and again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
