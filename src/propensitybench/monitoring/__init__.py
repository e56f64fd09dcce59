"""Monitors, which read transcripts as they grow and say how much each turn looks like a breach."""
