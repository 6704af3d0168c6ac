"""Side outputs: letters are sorted by weight while they are counted.

What to see: one function has three outputs, each a stream of its own type.
"""

from collections.abc import Iterable
from typing import Any

from eventide.common import Types
from eventide.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

LETTERS = [("Ada", 12), ("Bob", 480), ("Cleo", -3), ("Dan", 90), ("Eve", 2_100)]
LETTER = Types.TUPLE([Types.STRING(), Types.INT()])
HEAVY = OutputTag("heavy", LETTER)
WRONG = OutputTag("wrong", Types.STRING())


class SortsLetters(ProcessFunction):
    """Light letters go straight on."""

    def process_element(self, value: tuple[str, int], ctx: ProcessFunction.Context) -> Iterable[Any]:
        name, grams = value
        if grams <= 0:
            yield WRONG, f"the letter to {name} weighs {grams} g?"
        elif grams > 100:
            yield HEAVY, value
        else:
            yield value


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    light = env.from_collection(LETTERS, LETTER).process(SortsLetters(), LETTER)
    light.print("light")
    light.get_side_output(HEAVY).map(lambda letter: (letter[0], letter[1] / 1000)).print("heavy, in kg")
    light.get_side_output(WRONG).print("wrong")
    env.execute("letters")


if __name__ == "__main__":
    main()
