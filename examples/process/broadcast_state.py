"""Broadcast state: rules that all subtasks know decide which pairs of moves of a player are told.

A rule names two moves that count when one player makes them one after the other. Rules come on a stream of their own,
and each subtask has all of them.

What to see: Ada jumps after her run, which the first rule names. Bob ducks in between the two, which spoils it; but
his shot after his jump is what the second rule names.
"""

from collections.abc import Iterable

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import KeyedBroadcastProcessFunction, RuntimeContext, StreamExecutionEnvironment
from eventide.datastream.state import MapStateDescriptor, ValueStateDescriptor
from eventide.testing import ScriptedSource

PAIR = Types.TUPLE([Types.STRING(), Types.STRING()])
RULES = MapStateDescriptor("rules", Types.STRING(), PAIR)
THE_RULES = [("run", "jump"), ("jump", "shoot")]
MOVES = [("Ada", "run"), ("Bob", "run"), ("Ada", "jump"), ("Bob", "duck"), ("Bob", "jump"), ("Bob", "shoot")]


class TellsOfPairs(KeyedBroadcastProcessFunction):
    """Knows the last move of each player, and all rules."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.STRING()))

    def process_element(
        self, value: tuple[str, str], ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[str]:
        player, move = value
        for name, (first, second) in ctx.get_broadcast_state(RULES).items():
            if (self.last.value(), move) == (first, second):
                yield f"{player}: {name}"
        self.last.update(move)

    def process_broadcast_element(self, value: tuple[str, str], ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(RULES).put(" and ".join(value), value)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    rules = env.from_collection(THE_RULES, PAIR)
    # The moves begin a micro-batch after the rules: what comes first, when two streams meet, is not for sure otherwise.
    script = ScriptedSource(["game"], [[], [("game", move) for move in MOVES]])
    moves = env.from_source(script, WatermarkStrategy.no_watermarks(), "moves")
    found = moves.key_by(lambda move: move[0], Types.STRING()).connect(rules.broadcast(RULES)).process(TellsOfPairs())
    found.print()
    env.execute("moves")


if __name__ == "__main__":
    main()
