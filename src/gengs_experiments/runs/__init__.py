"""A run is a folder; and the one training loop that fills it."""
