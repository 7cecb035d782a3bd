"""What can be typed behind `dragoman`: the flags and help of each command.

Every start imports these files, so they import nothing heavy; the work is in `cli/commands/`.
"""
