"""The command ``eventide``: one file for each of its commands, put together in `app`."""
