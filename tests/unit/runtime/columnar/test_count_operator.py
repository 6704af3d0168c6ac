"""Count windows on columns: elements fill them, and time plays no role."""

from eventide.aggregates import sum_
from eventide.common import Types
from eventide.datastream.window import CountTumblingWindowAssigner
from eventide.runtime.columnar.keyed_operators import CountOperator
from eventide.runtime.metrics import Metrics
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.window.operation import open_columnar_windows
from eventide.testing import local_environment
from support.twin import plan_of

ROW = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])


def test_no_watermark_cuts_the_elements_of_a_batch():
    rows = local_environment().from_collection([], ROW)
    plan = plan_of(rows.key_by("user").window(CountTumblingWindowAssigner.of(2)).aggregate(sum_("amount")))
    operator = open_columnar_windows(plan.operators[0].operator, MemoryBackend(), OperatorContext(4, Metrics(), 0, 0))
    assert isinstance(operator, CountOperator)
    assert not operator.reacts_to(10)
    assert not operator.reacts_to(2**63 - 1)
