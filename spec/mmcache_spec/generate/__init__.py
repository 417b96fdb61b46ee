"""From the definitions to the packaged vectors: chosen, minimised, each worth its place."""
