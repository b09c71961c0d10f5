"""One module a command; the file's name is the command's."""
