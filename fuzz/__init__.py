"""Fuzzing: what any bytes may do to asrd, and nothing else (`make fuzz`)."""
