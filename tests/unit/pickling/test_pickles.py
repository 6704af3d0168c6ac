"""Data names classes: those of modules as pickle does, those of the program by what it brings."""

import enum
import pickle
import subprocess
import sys
import threading
from dataclasses import dataclass

import cloudpickle
import pytest

from eventide.errors import StateError
from eventide.pickling.pickles import ProgramClasses, bring, dumps, loads
from eventide.runtime.pickles import classes_of, dumps_program, loads_program


def program(bound=1):
    """A program as each start of it makes it: classes, and a function that uses them."""

    class Colour(enum.Enum):
        RED = bound

    @dataclass(frozen=True, slots=True)
    class Shade:
        colour: Colour

    @dataclass
    class Order:
        shade: Shade
        amount: int = bound

        class Line:
            pass

    return Order, lambda amount: Order(Shade(Colour(bound)), amount)


def test_data_of_one_start_is_of_the_classes_of_the_next():
    before, make = program()
    bring(classes_of([(make, "a function")]))
    stored = dumps({make(1).shade: [make(1), make(2)]})
    after, make_again = program()
    bring(classes_of([(make_again, "a function")]))
    assert loads(stored) == {make_again(1).shade: [make_again(1), make_again(2)]}
    assert [type(order) for order in loads(stored)[make_again(1).shade]] == [after, after]
    assert before is not after


def test_so_are_the_classes_themselves_and_those_in_them():
    before, make = program()
    bring(classes_of([(make, "a function")]))
    stored = dumps([before, before.Line, before.Line()])
    after, make_again = program()
    bring(classes_of([(make_again, "a function")]))
    assert loads(stored)[:2] == [after, after.Line]
    assert type(loads(stored)[2]) is after.Line


def test_plain_data_and_classes_of_modules_are_as_pickle_writes_them():
    data = [{"a": (1, 2.5, None)}, {b"x"}, StateError("x"), StateError, loads]
    assert dumps(data) == pickle.dumps(data, protocol=5)


def test_what_cannot_be_pickled_says_so():
    with pytest.raises(TypeError, match="cannot pickle"):
        dumps(threading.Lock())


def test_of_two_classes_of_one_name_neither_is_named():
    (one, make_one), (_, make_other) = program(), program()
    both = classes_of([(make_one, "one"), (make_other, "other")])
    assert one not in both.own
    bring(both)
    with pytest.raises(AttributeError, match=r"Can't pickle local object 'program\.<locals>\.Order'"):
        dumps(make_one(1))


def test_who_was_brought_last_has_the_name():
    (one, make_one), (other, make_other) = program(), program()
    for order, make in [(one, make_one), (other, make_other), (one, make_one)]:
        bring(classes_of([(make, "a function")]))
        assert b"dataclass_fields" not in dumps(make(1))
        assert type(loads(dumps(make(1)))) is order


def test_every_part_of_a_program_brings_the_classes_of_all_parts():
    _, make = program()
    other = lambda value: value  # noqa: E731 - a function that has no class in it
    classes = classes_of([(make, "source"), (other, "stage")])
    payloads = [dumps_program(part, "part", classes) for part in (make, other, make)]
    source, stage, again = map(loads_program, payloads)
    assert sorted(kind.__name__ for kind in stage.classes.own) == ["Colour", "Line", "Order", "Shade"]
    assert source.part(1) == again.part(1), "however often it is loaded, there is one class"
    assert stage.part(loads(dumps(source.part(1)))) == source.part(1)


def test_in_a_worker_which_has_another_main_file_there_is_one_class_too(tmp_path):
    _, make = program()
    classes = classes_of([(make, "source")])
    names = lambda orders: sorted({order.shade.colour.name for order in orders})  # noqa: E731 - it travels by value
    for name, part in [("source", make), ("stage", names)]:
        (tmp_path / name).write_bytes(dumps_program(part, name, classes))
    script = """
import sys
from pathlib import Path
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.pickles import loads_program
make, names = (loads_program(Path(sys.argv[1], name).read_bytes()).part for name in ("source", "stage"))
data = dumps([make(1), make(2)])
assert loads(data) == [make(1), make(2)] and names(loads(data)) == ["RED"] and len(data) < 600, len(data)
again = loads_program(Path(sys.argv[1], "source").read_bytes()).part
assert again(1) == make(1) and loads(data)[0].shade.colour is again(1).shade.colour
"""
    ran = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()


MAIN = """
import sys
from dataclasses import dataclass, field
from pathlib import Path
from eventide.pickling.pickles import dumps, loads
{classes}
file = Path(sys.argv[1])
if file.exists():
    print(loads(file.read_bytes()))
else:
    file.write_bytes(dumps([Order(1)]))
"""
ORDER = "@dataclass\nclass Order:\n    amount: int\n"


def start(tmp_path, classes):
    script = MAIN.format(classes=classes)
    return subprocess.run([sys.executable, "-c", script, str(tmp_path / "data")], capture_output=True, check=False)


def test_the_main_file_may_give_a_class_another_field_but_must_keep_the_class(tmp_path):
    assert start(tmp_path, ORDER).returncode == 0
    assert start(tmp_path, ORDER).stdout.decode() == "[Order(amount=1)]\n"
    assert start(tmp_path, ORDER + "    note: str = 'none'\n").stdout.decode() == "[Order(amount=1, note='none')]\n"
    gone = start(tmp_path, "").stderr.decode().splitlines()[-1]
    assert gone.startswith(
        "eventide.errors.StateError: the stored data have objects of Order of the module __main__, and the program has "
        "nothing of that name. It must stay in the program"
    )


def test_a_class_that_no_program_brings_any_more_is_named():
    kind = type("Gone", (), {"__module__": "no_module", "__qualname__": "f.<locals>.Gone"})
    bring(ProgramClasses((kind,)))
    stored = dumps(kind())
    with pytest.raises(StateError, match=r"objects of f\.<locals>\.Gone of the module no_module"):
        subprocess_loads(stored)


def subprocess_loads(stored):
    """Load what another process would."""
    script = "import sys, pickle; from eventide.pickling.pickles import loads\n"
    script += "try: loads(sys.stdin.buffer.read())\n"
    script += "except Exception as error: sys.stdout.buffer.write(pickle.dumps(error))\n"
    ran = subprocess.run([sys.executable, "-c", script], input=stored, capture_output=True, check=True)
    raise pickle.loads(ran.stdout)


def test_an_error_in_the_users_own_code_stays_what_it_is():
    with pytest.raises(AttributeError, match="of the user's own"):
        loads(cloudpickle.dumps(Raises()))


class Raises:
    def __setstate__(self, state):
        raise AttributeError("of the user's own")

    def __getstate__(self):
        return 1
