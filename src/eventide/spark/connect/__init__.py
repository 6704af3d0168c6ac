"""Spark Connect: the server is asked, and results are kept until the program takes them."""
