"""Functions that users write in Python: their bodies, and the confined processes that run them."""
