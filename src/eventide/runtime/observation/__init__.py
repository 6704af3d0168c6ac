"""What is only there to be looked at: results depend on none of it."""
