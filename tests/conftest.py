"""What every test may ask for; made in `tests.support`."""

from tests.support.drivers import build, vectors
from tests.support.hand_made import hand_made, start, vector_directory

__all__ = ["build", "hand_made", "start", "vector_directory", "vectors"]
