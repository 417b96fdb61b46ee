"""Many releases: which wrong decision came, and when it went."""
