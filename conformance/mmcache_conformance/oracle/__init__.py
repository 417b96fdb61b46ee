"""The specification, asked directly."""
