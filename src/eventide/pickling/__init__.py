"""Users' data as bytes, and back without running what is in them."""
