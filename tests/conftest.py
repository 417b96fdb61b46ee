"""What every test may ask for; made in `tests.support`."""

import gc

from tests.support.drivers import build, short_folder, vectors
from tests.support.hand_made import hand_made, start, vector_directory

__all__ = ["build", "hand_made", "short_folder", "start", "vector_directory", "vectors"]


def pytest_collection_finish() -> None:
    """What was collected stays: a pytest that a test runs looks through all of it six times."""
    gc.collect()
    gc.freeze()
