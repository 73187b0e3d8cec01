"""Hand a finished dataset on, and fetch one. Imports card, and what card imports."""
