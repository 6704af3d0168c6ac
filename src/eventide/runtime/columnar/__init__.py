"""Windows at the speed of columns: from the source to the result no Python object is made for a row."""
