"""What a run finds: vectors played on a target, compared, and counted."""
