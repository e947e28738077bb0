"""What is true on this machine, and what it means: facts, probes, catalogue, stack, judge."""
