"""Collectives: the time of each algorithm on a spread, explicit schedules and their proof."""
