"""Grids of runs. Imports training, and what training imports."""
