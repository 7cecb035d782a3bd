"""The folder that tools work in: what is there, what a turn changed, as a diff, and the way back."""
