"""Other memories, on their way in: what a file or folder holds, as ops, with a report of what could not be taken."""
