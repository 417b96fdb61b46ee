"""Recordings of a running engine: written, read, judged."""
