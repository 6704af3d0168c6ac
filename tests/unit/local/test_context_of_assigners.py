"""The runtime context of a window assigner of the user's own."""

from eventide.common import Types
from eventide.common.windows import TimeWindow
from eventide.datastream.functions import WindowFunction
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import CountTrigger, WindowAssigner
from eventide.testing import local_environment


class BySubtask(WindowAssigner):
    """A window for each subtask and element of a key, as its runtime context tells them."""

    def assign_windows(self, element, timestamp, context):
        where = context.get_runtime_context()
        count = where.get_state(ValueStateDescriptor("count", Types.LONG()))
        count.update((count.value() or 0) + 1)
        parallelism, name = where.get_number_of_parallel_subtasks(), where.get_task_name()
        assert (parallelism, name) == (2, "by subtask")
        return [TimeWindow(where.get_index_of_this_subtask(), 10 + count.value())]

    def get_default_trigger(self, env=None):
        return CountTrigger.of(1)

    def is_event_time(self):
        return False


class Windows(WindowFunction):
    """Gives the key and the window."""

    def apply(self, key, window, inputs):
        return [(key, window.start, window.end)]


def test_an_assigner_knows_its_subtask_and_has_state():
    env = local_environment().set_parallelism(2)
    stream = env.from_collection([*"abcdefgh", *"abcdefgh"], Types.STRING()).key_by(lambda e: e)
    found = list(stream.window(BySubtask()).apply(Windows()).name("by subtask").execute_and_collect())
    ends = {key: [end for one, _, end in found if one == key] for key in "abcdefgh"}
    assert all(of_key == [11, 12] for of_key in ends.values())
    assert {start for _, start, _ in found} == {0, 1}
