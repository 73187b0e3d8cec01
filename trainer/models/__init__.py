"""The agents. Imports core, data and game."""
