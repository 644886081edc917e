"""Records: what a measurement leaves on disk, and how it is read back. SCHEMA.md explains every field."""
