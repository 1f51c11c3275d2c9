"""Values: frozen records, states, the event union. Reads no files and no clock; cheap to import."""
