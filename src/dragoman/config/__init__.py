"""What a person set: files, environment and flags. Only the rim of the house reads it."""
