"""The space of layouts, and the best of it."""
