"""A manager beside the specified one, in every state that both can reach."""
