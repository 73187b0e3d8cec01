"""A dataset folder: shards, manifest, contract, verification. Imports all rooms above it."""
