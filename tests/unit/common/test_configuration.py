import pytest

from eventide.common import Configuration, ExecutionConfig
from eventide.errors import ProgramError


def test_what_was_set_is_read_in_any_form_that_fits():
    options = Configuration().set_integer("n", 3).set_boolean("flag", True).set_float("x", 0.5)
    assert options.get_string("n", None) == "3"
    assert options.get_float("n", None) == 3.0
    assert options.get_boolean("flag", False) is True
    assert options.to_dict() == {"n": "3", "flag": "true", "x": "0.5"}


def test_a_value_that_does_not_fit_is_named():
    with pytest.raises(ProgramError, match="'n': expected an integer, got 'many'"):
        Configuration.from_dict({"n": "many"}).get_integer("n", 0)


def test_a_copy_is_independent_and_prefixes_separate():
    one = Configuration.from_dict({"a": "1"})
    other = Configuration(one).add_all(one, "old.")
    assert one.key_set() == {"a"}
    assert other.key_set() == {"a", "old.a"}
    assert other.remove_config("old.a")
    assert not other.remove_config("old.a")
    assert one == other


def test_bytes_come_back_as_they_were_set():
    options = Configuration().set_bytearray("key", bytearray(b"\x00\xff"))
    assert options.get_bytearray("key", None) == bytearray(b"\x00\xff")
    assert options.get_bytearray("none", bytearray(b"x")) == bytearray(b"x")
    assert options.get_bytearray("none", None) is None
    with pytest.raises(ProgramError, match="option 'n': expected bytes, got 3"):
        Configuration().set_integer("n", 3).get_bytearray("n", None)


def test_a_list_has_brackets_or_semicolons():
    assert Configuration.parse_list_value("") == Configuration.parse_list_value(None) == []
    assert Configuration.parse_list_value("- a\n- 'b'\n") == ["a", "b"]
    assert Configuration.parse_list_value("['a', b]") == ["a", "b"]
    assert Configuration.parse_list_value("a; b") == ["a", "b"]


def test_a_configuration_is_shown_and_hashed_as_its_options():
    one, other = Configuration().set_string("k1", "v1").set_integer("k2", 1), Configuration()
    assert (str(one), str(other)) == ("{k1=v1, k2=1}", "{}")
    assert hash(other.set_string("k2", "1").set_string("k1", "v1")) == hash(one)
    assert {one: "found"}[other] == "found"


def test_execution_configs_are_equal_if_the_same_was_set():
    one, other = ExecutionConfig(), ExecutionConfig()
    assert (one == other, hash(one) == hash(other)) == (True, True)
    assert one.set_parallelism(3) != other
    assert one == other.set_parallelism(3) != 3
    assert hash(one) == hash(other)


def test_the_closure_cleaner_is_as_it_was_set_last():
    config = ExecutionConfig()
    assert config.is_closure_cleaner_enabled()
    with pytest.warns(UserWarning, match="closure_cleaner has no effect"):
        assert not config.disable_closure_cleaner().is_closure_cleaner_enabled()
    assert config.enable_closure_cleaner().is_closure_cleaner_enabled()
