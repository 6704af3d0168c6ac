"""``python -m eventide`` is the command ``eventide``."""

from eventide.cli.app import app

if __name__ == "__main__":
    app(prog_name="eventide")
