"""A state backend that tells what was asked of it."""

from eventide.runtime.state.backend import MemoryBackend


class CountingBackend(MemoryBackend):
    """Remembers which names were read, written and deleted."""

    def __init__(self, values=None):
        super().__init__(values)
        self.calls = []

    def get(self, name):
        self.calls.append(("get", name))
        return super().get(name)

    def put(self, name, value):
        self.calls.append(("put", name))
        super().put(name, value)

    def delete(self, name):
        self.calls.append(("delete", name))
        super().delete(name)

    def all_of(self, prefix):
        self.calls.append(("all_of", prefix))
        return super().all_of(prefix)
