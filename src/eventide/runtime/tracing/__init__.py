"""Functions of the user's on columns: traced once, and then run on whole batches where that gives exactly the same."""
