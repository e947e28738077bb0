"""The step: what runs inside a deck, next to torch. The only wing that imports torch."""
