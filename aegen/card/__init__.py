"""The card of a dataset. Imports dataset, and what dataset imports."""
