"""What runs now, on a terminal.

glance  the figures: pure, from an index and a moment
words   the same for people
screen  the live view (Textual, the extra `asrd[top]`)
"""
