"""What a user holds: results, races, profiles; read from records, with numbers by analysis."""
