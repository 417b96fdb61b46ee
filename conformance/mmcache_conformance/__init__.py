"""Does an implementation of the multimodal encoder cache do what the specification says?

Vectors (`suite`) are run by the `runner` against a `target`: a Python class, a vLLM source file,
or whatever else answers the same calls. `mmcache-conformance --help` and `docs/` say how.
"""
