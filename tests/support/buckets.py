"""Where single keys lie."""

import numpy as np

from eventide.runtime.state.bucket_store import addresses


def address(key_hash, count):
    """The bucket of a hash among some number of them."""
    return int(addresses(np.array([key_hash], np.uint64), count)[0])
