"""The core of the planner: knows no file format and no terminal."""
