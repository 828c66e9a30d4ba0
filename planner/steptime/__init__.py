"""Step time and memory of layouts: ``step_time`` for one, ``step_columns`` for many."""
