"""State by key: the mean of every two measurements of a sensor, and state that goes when a sensor falls silent.

What to see: each sensor has a sum of its own. The state is forgotten an hour after its last use, so that sensors that
are taken down leave no state.
"""

from collections.abc import Iterable

from eventide.common import Time, Types
from eventide.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from eventide.datastream.state import StateTtlConfig, ValueStateDescriptor

MEASURED = [("north", 3), ("south", 4), ("north", 5), ("north", 7), ("south", 9), ("north", 4)]
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class MeanOfTwo(FlatMapFunction):
    """Keeps the count and the sum of what it has not given yet."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count and sum", PAIR)
        descriptor.enable_time_to_live(
            StateTtlConfig.new_builder(Time.hours(1))
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        self.sum = runtime_context.get_state(descriptor)

    def flat_map(self, value: tuple[str, int]) -> Iterable[tuple[str, float]]:
        count, total = self.sum.value() or (0, 0)
        count, total = count + 1, total + value[1]
        if count < 2:
            self.sum.update((count, total))
        else:
            self.sum.clear()
            yield value[0], total / count


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    measured = env.from_collection(MEASURED, PAIR)
    means = measured.key_by(lambda pair: pair[0], Types.STRING()).flat_map(MeanOfTwo())
    means.map(lambda mean: f"{mean[0]}: {mean[1]}", Types.STRING()).print()
    env.execute("means of two")


if __name__ == "__main__":
    main()
