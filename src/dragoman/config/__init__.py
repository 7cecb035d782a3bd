"""Settings from files, environment and flags. Only the server and the terminal program read them."""
