"""What everybody uses: errors, config, files, records, the dataset format, device, randomness.

Imports: nothing.
"""
