"""What each command does, a file a command. Imported when it is used, so heavy imports are fine here."""
