"""The board: runs of many models in one table, as a folder that any web server can serve."""
