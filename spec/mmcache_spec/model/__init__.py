"""The protocols: what must hold, the wrong decisions, what there is to reach."""
