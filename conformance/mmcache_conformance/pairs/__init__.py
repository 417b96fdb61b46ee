"""Pairs of processor caches as targets: what is asked of them, and what they show."""
