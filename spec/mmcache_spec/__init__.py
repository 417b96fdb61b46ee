"""The specification of the multimodal encoder cache, and its proofs."""
