"""The line protocol between referee and bot: messages, lines and the order in which they may come.

Standard library only, no input or output, no game rules.
"""
