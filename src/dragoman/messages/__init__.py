"""Messages, their parts, events and requests: values only, no I/O, no clock."""
