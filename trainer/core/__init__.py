"""What everybody uses: errors, config, device, text. Imports nothing of trainer."""
