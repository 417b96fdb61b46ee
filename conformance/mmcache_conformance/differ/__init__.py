"""A manager beside the specified one on random sequences of calls, in random worlds."""
