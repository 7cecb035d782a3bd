"""Tools a model may call: how they are made, offered, allowed and run; those that come with the program."""
