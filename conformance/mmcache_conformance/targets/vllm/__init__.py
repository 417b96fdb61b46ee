"""The managers of vLLM, from a file, a checkout, an installation or a released wheel."""
