"""What is said: values only, no I/O, no clock."""
