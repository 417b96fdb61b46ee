"""Which vectors are run: loading and selecting."""
