"""Connected streams: a word passes once it is not blocked; both streams share the state of a word.

What to see: "lions" and "bears" are blocked, so they never come out; every other word does.
"""

from collections.abc import Iterable

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import CoFlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from eventide.datastream.connectors import NumberSequenceSource
from eventide.datastream.state import ValueStateDescriptor

BLOCKED = ["lions", "bears"]
SAID = ["tigers", "and", "lions", "and", "bears", "oh", "my"]


class Passes(CoFlatMapFunction):
    """The first stream blocks words, the second one says them."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.blocked = runtime_context.get_state(ValueStateDescriptor("blocked", Types.BOOLEAN()))

    def flat_map1(self, value: str) -> Iterable[str]:
        self.blocked.update(True)
        return []

    def flat_map2(self, value: str) -> Iterable[str]:
        if not self.blocked.value():
            yield value


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    blocked = env.from_collection(BLOCKED, Types.STRING())
    numbers = env.from_source(NumberSequenceSource(0, len(SAID) - 1), WatermarkStrategy.no_watermarks(), "numbers")
    said = numbers.map(lambda number: SAID[number], Types.STRING())
    blocked.connect(said).key_by(str, str, Types.STRING()).flat_map(Passes(), Types.STRING()).print()
    env.execute("words")


if __name__ == "__main__":
    main()
