"""In a store without a rename that fails, the last run that has begun owns a checkpoint, and the one before stops."""

import pickle

import pytest

from eventide.errors import StateError
from eventide.spark.checkpoint.owner import Ownership

TAKEN = "another run of this job has begun with its checkpoint, and this one has stopped"


def test_the_run_that_began_last_owns_a_checkpoint(tmp_path):
    first, second = (Ownership(str(tmp_path), run) for run in ("first", "second"))
    first.claim().check()
    second.claim().check()
    with pytest.raises(StateError, match=TAKEN):
        first.check()
    pickle.loads(pickle.dumps(second)).check()


def test_a_checkpoint_that_was_deleted_is_nobodys(tmp_path):
    with pytest.raises(StateError, match=TAKEN):
        Ownership(str(tmp_path / "gone"), "run").check()
