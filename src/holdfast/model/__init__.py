"""WHAT THINGS ARE: frozen records, states, the event union. No files, no clock, and imports that cost nothing."""
