"""What everybody uses: errors, config, device, text, randomness.

Imports: nothing.
"""
