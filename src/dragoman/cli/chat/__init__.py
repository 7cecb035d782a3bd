"""`dragoman chat`: a conversation at the terminal."""
