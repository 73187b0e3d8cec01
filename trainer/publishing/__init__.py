"""Publish a trained agent. Imports training, and what training imports."""
