"""The whole data stage, step by step. Imports card, and what card imports."""
