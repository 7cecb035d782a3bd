"""What each command does. Imported when it is called, so heavy imports are fine here."""
