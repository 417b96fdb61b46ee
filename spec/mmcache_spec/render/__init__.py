"""Definitions and traces as text for people."""
