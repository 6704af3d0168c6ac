"""Schemas of rows and single messages: Flink's meaning, and errors that say which message and field."""

import datetime as dt
import json
import pickle
import sys
from decimal import Decimal

import pyarrow as pa
import pytest

from eventide.common import Instant, Row, Types
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.windows import TimeWindow
from eventide.datastream.formats.avro import AvroSchema
from eventide.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from eventide.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from eventide.errors import DataError, ProgramError, TypeMismatch
from eventide.testing import local_environment

USER = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.INT()])


def json_of(row_type):
    return JsonRowDeserializationSchema.builder().type_info(row_type)


def one(type_info):
    """The type of rows with one field."""
    return Types.ROW_NAMED(["f"], [type_info])


def value(type_info, text):
    return json_of(one(type_info)).build().deserialize(f'{{"f": {text}}}'.encode()).f


class TestJson:
    @pytest.mark.parametrize(
        ("type_info", "text", "expected"),
        [
            (Types.STRING(), "5", "5"),
            (Types.STRING(), "true", "true"),
            (Types.STRING(), '{"a": [1.50, "ü", null]}', '{"a":[1.5,"ü",null]}'),
            (Types.STRING(), "1.10", "1.1"),
            (Types.STRING(), "1e2", "100.0"),
            (Types.STRING(), "12345678.5", "1.23456785E7"),
            (Types.STRING(), "12345678901234567890", "12345678901234567890"),
            (Types.STRING(), '"1.10"', "1.10"),
            (Types.INT(), '" 5 "', 5),
            (Types.BOOLEAN(), '"TRUE"', True),
            (Types.BOOLEAN(), '"yes"', False),
            (Types.DOUBLE(), '"NaN"', pytest.approx(float("nan"), nan_ok=True)),
            (Types.DOUBLE(), '"-Infinity"', float("-inf")),
            (Types.INT(), "1.0", 1),
            (Types.INT(), "1.9", 1),
            (Types.INT(), "-1.9", -1),
            (Types.INT(), "1e3", 1000),
            (Types.INT(), "2.147483647e9", 2**31 - 1),
            (Types.LONG(), "-0.5", 0),
            (Types.STRING(), "-0", "0"),
            (Types.STRING(), "-0.0", "-0.0"),
            (Types.LONG(), "1E2", 100),
            (Types.LONG(), "9.3e17", 930_000_000_000_000_000),
            (Types.LONG(), "9.223372036854775807e18", 2**63 - 1),
            (Types.FLOAT(), "1e39", float("inf")),
            (Types.FLOAT(), "0.1", 0.10000000149011612),
            (Types.BIG_DEC(), "1.10", Decimal("1.10")),
            (Types.BIG_INT(), "12345678901234567890123", 12345678901234567890123),
            (Types.SQL_DATE(), '"2026-05-01"', dt.date(2026, 5, 1)),
            (Types.SQL_TIME(), '"10:11:12.5Z"', dt.time(10, 11, 12, 500_000)),
            (Types.SQL_TIMESTAMP(), '"2026-05-01T10:00:00.25Z"', dt.datetime(2026, 5, 1, 10, 0, 0, 250_000)),  # noqa: DTZ001
            (Types.SQL_TIMESTAMP(), '"2026-05-01 10:00:00-0130"', dt.datetime(2026, 5, 1, 11, 30)),  # noqa: DTZ001
            (Types.INSTANT(), '"1970-01-01T00:00:01.5Z"', Instant(1, 500_000_000)),
            (Types.PRIMITIVE_ARRAY(Types.BYTE()), '"AAH/"', b"\x00\x01\xff"),
            (Types.MAP(Types.INT(), Types.STRING()), '{"1": "a"}', {1: "a"}),
            (Types.LIST(Types.INT()), "[1, null]", [1, None]),
            (Types.ROW([Types.INT()]), '{"f0": 3}', Row(f0=3)),
            (Types.TUPLE([Types.INT(), Types.INT()]), '{"f0": 3}', (3, None)),
            (Types.INT(), "null", None),
        ],
    )
    def test_values_have_flinks_forms(self, type_info, text, expected):
        assert value(type_info, text) == expected

    @pytest.mark.parametrize(
        ("type_info", "text"),
        [
            (Types.INT(), '"1.0"'),
            (Types.INT(), "2147483647.5"),
            (Types.INT(), "3e9"),
            (Types.LONG(), '"1e3"'),
            (Types.LONG(), "1e19"),
            (Types.LONG(), "1e999"),
            (Types.SHORT(), "1.0"),
            (Types.BYTE(), "1e1"),
            (Types.INT(), "2147483648"),
            (Types.INT(), "[1]"),
            (Types.LONG(), '"1_000"'),
            (Types.DOUBLE(), '"inf"'),
            (Types.SQL_DATE(), '"2026-02-30"'),
            (Types.SQL_TIMESTAMP(), '"2026-05-01"'),
            (Types.PRIMITIVE_ARRAY(Types.BYTE()), '"?"'),
            (Types.PRIMITIVE_ARRAY(Types.BYTE()), "true"),
            (Types.PRIMITIVE_ARRAY(Types.BYTE()), "1234"),
            (Types.BIG_DEC(4, 1), "1.25"),
            (Types.CHAR(), '"ab"'),
            (Types.LIST(Types.INT()), '{"0": 1}'),
            (Types.ROW([Types.INT()]), "[3]"),
            (Types.MAP(Types.INT(), Types.STRING()), '{"a": "a"}'),
            (Types.STRING(), '"\\ud800"'),
        ],
    )
    def test_what_is_not_of_its_type_is_refused_or_ignored(self, type_info, text):
        with pytest.raises(DataError, match="field f"):
            value(type_info, text)
        lenient = json_of(one(type_info)).ignore_parse_errors().build()
        found = lenient.deserialize(f'{{"f": {text}}}'.encode())
        assert found.f is None or found.f == {None: "a"}

    def test_an_error_says_which_message_and_field(self):
        inner = Types.ROW_NAMED(["tags"], [Types.LIST(Types.INT())])
        with pytest.raises(DataError, match=r"""message b'.*' cannot .*: field f\.tags\[1\]: expected INT, got "x\""""):
            value(inner, '{"tags": [1, "x"]}')

    @pytest.mark.parametrize("message", [b"", b"{", b"[]", b"5", b"\xff", b'{"user": NaN}'])
    def test_what_is_no_object_is_refused_or_left_out(self, message):
        with pytest.raises(DataError, match="cannot be read as JSON"):
            json_of(USER).build().deserialize(message)
        assert json_of(USER).ignore_parse_errors().build().deserialize(message) is None

    def test_a_field_that_is_missing_is_none_unless_it_must_be_there(self):
        message = b'{"amount": 5, "more": 1}'
        assert json_of(USER).build().deserialize(message) == Row(user=None, amount=5)
        with pytest.raises(DataError, match="field user: it is missing"):
            json_of(USER).fail_on_missing_field().build().deserialize(message)
        with pytest.raises(ProgramError, match="exclude each other"):
            json_of(USER).fail_on_missing_field().ignore_parse_errors().build()

    def test_null_is_no_row_and_what_comes_after_an_object_is_not_looked_at(self):
        schema = json_of(USER).build()
        assert schema.deserialize(b"null") is None
        assert schema.deserialize(b' {"user": "a"} and more') == Row(user="a", amount=None)

    def test_objects_are_written_without_spaces_and_with_all_fields(self):
        types = [Types.BIG_DEC(), Types.SQL_TIMESTAMP(), Types.SQL_TIME(), Types.DOUBLE(), Types.STRING()]
        schema = JsonRowSerializationSchema.builder().with_type_info(Types.ROW(types)).build()
        row = Row(Decimal("1.10"), dt.datetime(2026, 5, 1), dt.time(1), float("nan"), None)  # noqa: DTZ001
        assert schema.serialize(row) == (
            b'{"f0":1.10,"f1":"2026-05-01T00:00:00Z","f2":"01:00:00Z","f3":"NaN","f4":null}'
        )

    def test_what_is_not_of_the_type_is_not_written(self):
        schema = JsonRowSerializationSchema.builder().with_type_info(USER).build()
        with pytest.raises(TypeMismatch, match="field amount: expected INT, got 'x'"):
            schema.serialize(Row(user="a", amount="x"))
        with pytest.raises(DataError, match="None"):
            schema.serialize(None)

    @pytest.mark.parametrize(
        "type_info", [None, Types.STRING(), one(Types.PICKLED_BYTE_ARRAY()), one(Types.TIME_WINDOW())]
    )
    def test_a_type_without_a_form_is_refused_when_the_schema_is_built(self, type_info):
        with pytest.raises(ProgramError):
            json_of(type_info).build()
        if type_info != one(Types.TIME_WINDOW()):  # a window can be written
            with pytest.raises(ProgramError):
                JsonRowSerializationSchema.builder().with_type_info(type_info).build()

    def test_a_window_with_an_open_bound_is_written_alike_from_columns_and_by_itself(self):
        windows, kind = [TimeWindow(MIN_MS, 5), TimeWindow(-7, MAX_MS)], one(Types.TIME_WINDOW())
        schema = JsonRowSerializationSchema.builder().with_type_info(kind).build()
        rows = [Row(f=window) for window in windows]
        written = [schema.serialize(row) for row in rows]
        assert written[1] == b'{"f":{"start":-7,"end":9223372036854775807}}'
        assert schema.serialize_column(kind.to_arrow(rows), kind).to_pylist() == written

    def test_the_type_may_come_from_a_json_schema(self):
        schema = """{"type": "object", "definitions": {"id": {"type": "integer"}}, "properties": {
            "id": {"$ref": "#/definitions/id"}, "at": {"type": "string", "format": "date-time"},
            "data": {"type": "string", "contentEncoding": "base64"}, "ratio": {"type": ["number", "null"]},
            "open": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
            "tags": {"type": "array", "items": {"type": "string"}}}}"""
        assert JsonRowDeserializationSchema.builder().json_schema(
            schema
        ).build().get_produced_type() == Types.ROW_NAMED(
            ["id", "at", "data", "ratio", "open", "tags"],
            [
                Types.BIG_INT(),
                Types.SQL_TIMESTAMP(),
                Types.PRIMITIVE_ARRAY(Types.BYTE()),
                Types.BIG_DEC(),
                Types.BOOLEAN(),
                Types.OBJECT_ARRAY(Types.STRING()),
            ],
        )

    @pytest.mark.parametrize(
        ("schema", "says"),
        [
            ("{", "is not JSON"),
            ("[]", "an object with properties"),
            ('{"properties": {}, "type": "object"}', "a value that has no eventide type"),
            ('{"type": "object", "properties": {"a": {"type": "null"}}}', "'a'.* a value that has no eventide type"),
            ('{"type": "object", "properties": {"a": {"type": ["string", "number"]}}}', "only one type besides null"),
            ('{"type": "object", "properties": {"a": {"$ref": "other.json"}}}', "points outside the schema"),
            ('{"type": "object", "properties": {"a": {"$ref": "#/x"}}}', "points to nothing"),
        ],
    )
    def test_a_json_schema_without_a_type_is_refused(self, schema, says):
        with pytest.raises(ProgramError, match=says):
            JsonRowDeserializationSchema.builder().json_schema(schema)


class TestCsv:
    def reader(self, row_type=USER):
        return CsvRowDeserializationSchema.Builder(row_type)

    def test_cells_are_found_by_position(self):
        assert self.reader().build().deserialize(b'"a, b", 5\nmore') == Row(user="a, b", amount=5)
        schema = self.reader(Types.TUPLE([Types.SQL_TIMESTAMP(), Types.SQL_TIME(), Types.SQL_DATE()])).build()
        assert schema.deserialize(b"2026-05-01 10:00:00.0,10:00:00,2026-05-01") == (
            dt.datetime(2026, 5, 1, 10),  # noqa: DTZ001
            dt.time(10),
            dt.date(2026, 5, 1),
        )

    @pytest.mark.parametrize(
        ("message", "says"),
        [
            (b"", "it is empty"),
            (b"a", r"expected 2 cell\(s\), got 1"),
            (b"a,1,2", r"expected 2 cell\(s\), got 3"),
            (b"a,x", "field amount: expected INT, got 'x'"),
            (b"a,", "field amount: expected INT, got ''"),
            (b"a,1,,", r"expected 2 cell\(s\), got 4"),
            (b'"a', "cell 1 has a quote or an escape character out of place"),
            (b'a,"1"2', "cell 2 has a quote or an escape character out of place"),
            (b'a,"1""', "cell 2 has a quote or an escape character out of place"),
        ],
    )
    def test_a_line_that_does_not_fit_is_refused(self, message, says):
        with pytest.raises(DataError, match=says):
            self.reader().build().deserialize(message)

    def test_with_errors_ignored_there_is_as_much_as_can_be_read(self):
        schema = self.reader().set_ignore_parse_errors(True).build()
        messages = [b"", b"a", b"a,1,2", b"a,1,,", b"a,x", b"\xff"]
        assert [*map(schema.deserialize, messages)] == [
            None,
            Row(user="a", amount=None),
            None,
            None,
            Row(user="a", amount=None),
            None,
        ]
        parts = self.reader(one(Types.ROW([Types.INT(), Types.STRING()]))).set_ignore_parse_errors(True).build()
        assert [parts.deserialize(cell).f for cell in (b"1;a;3", b"1", b"x;a")] == [
            Row(f0=1, f1="a"),
            Row(f0=1, f1=None),
            Row(f0=None, f1="a"),
        ]

    @pytest.mark.parametrize("message", [b"a,1,", b"a,1, ", b"a,1,\r\n", b'"a","1",', b'"a" ,1', b'a,"1" ', b'"a"\t,1'])
    def test_a_delimiter_may_end_the_line_and_blanks_may_follow_quotes(self, message):
        for lenient in (False, True):
            schema = self.reader().set_ignore_parse_errors(lenient).build()
            assert schema.deserialize(message) == Row(user="a", amount=1)
            assert schema.deserialize_column(pa.array([b"b,2", message])).to_pylist() == [
                {"user": "b", "amount": 2},
                {"user": "a", "amount": 1},
            ]

    def test_blanks_after_quotes_end_at_a_delimiter_that_is_one(self):
        assert self.reader().set_field_delimiter("\t").build().deserialize(b'"a" \t1') == Row(user="a", amount=1)

    @pytest.mark.parametrize(
        ("cell", "text"),
        [
            (r"a\nb", "a\nb"),
            (r"\t\r", "\t\r"),
            (r'"a\0\n"', "a\0\n"),
            (r"\,\\\"", ',\\"'),
            (r'"\"\n"""', '"\n"'),
            ('a""b', 'a""b'),
        ],
    )
    def test_letters_after_the_escape_character_are_those_of_java(self, cell, text):
        schema = self.reader().set_escape_character("\\").build()
        assert schema.deserialize(f"{cell},1".encode()) == Row(user=text, amount=1)
        with pytest.raises(DataError, match="cell 2 has a quote or an escape character out of place"):
            schema.deserialize(b"a,1\\")

    def test_a_mark_of_the_order_of_bytes_is_left_out(self):
        lines, objects = self.reader().build(), json_of(USER).build()
        for schema, message in ((lines, "\ufeffa,1"), (objects, '\ufeff{"user": "a", "amount": 1}')):
            assert schema.deserialize(message.encode()) == Row(user="a", amount=1)
            [row] = schema.deserialize_column(pa.array([message.encode()])).to_pylist()
            assert row == {"user": "a", "amount": 1}

    def test_a_literal_stands_for_none_and_a_comment_for_no_row(self):
        schema = self.reader().set_null_literal("").set_allow_comments(True).build()
        assert [*map(schema.deserialize, [b",", b"# a,1"])] == [Row(user=None, amount=None), None]

    @pytest.mark.parametrize("before", [b"#c\n", b"#c\r\n#d\n", b"\n\n", b"  #c\n", b"  \n#\n "])
    def test_comments_and_blank_lines_before_the_row_are_left_out(self, before):
        schema = self.reader().set_allow_comments(True).build()
        assert schema.deserialize(before + b"a,1\n#d") == Row(user="a", amount=1)
        assert schema.deserialize(before) is None
        with pytest.raises(DataError, match="it is empty"):
            schema.deserialize(b"")

    def test_an_empty_cell_is_no_row_and_a_list_without_elements(self):
        row_type = Types.TUPLE([Types.ROW([Types.INT(), Types.STRING()]), Types.LIST(Types.STRING())])
        for lenient in (False, True):
            schema = self.reader(row_type).set_ignore_parse_errors(lenient).build()
            assert [*map(schema.deserialize, [b",", b' ,""'])] == [(None, [])] * 2

    def test_a_literal_stands_for_the_elements_of_a_list(self):
        row_type = Types.TUPLE([Types.LIST(Types.STRING())])
        empty, word = (self.reader(row_type).set_null_literal(literal).build() for literal in ("", "n/a"))
        assert [*map(empty.deserialize, [b'""', b"a;;b"])] == [([],), (["a", None, "b"],)]
        assert [*map(word.deserialize, [b"n/a", b"a;n/a", b'""'])] == [([None],), (["a", None],), ([],)]

    @pytest.mark.parametrize(
        ("settings", "text", "cell"),
        [
            ({}, "a", "a"),
            ({}, "", ""),
            ({}, "a-b", "a-b"),
            ({}, "a;b", "a;b"),
            ({}, "héé", "héé"),
            ({}, "x" * 24, "x" * 24),
            ({}, "x" * 25, f'"{"x" * 25}"'),
            ({}, "a b", '"a b"'),
            ({}, "a+b", '"a+b"'),
            ({}, "#x", '"#x"'),
            ({}, "a\tb", '"a\tb"'),
            ({}, "a\r\nb", '"a\r\nb"'),
            ({}, 'a"b', '"a""b"'),
            ({"set_escape_character": "\\"}, 'a"b', '"a""b"'),
            ({"set_escape_character": "\\"}, "a\\b", '"a\\\\b"'),
            ({}, "a\\b", '"a\\b"'),
            ({"set_escape_character": "*"}, "a\\b", "a\\b"),
            ({"set_field_delimiter": "|"}, "a.b", '"a.b"'),
            ({"set_field_delimiter": "|"}, "a~b", '"a~b"'),
            ({"set_field_delimiter": ";", "set_quote_character": "'"}, "a;b'c", "'a;b''c'"),
            ({"set_escape_character": "*", "set_quote_character": "'"}, "123'4*", "'123''4**'"),
            ({"set_line_delimiter": "~"}, "a", '"a"'),
        ],
    )
    def test_a_text_is_written_as_flink_writes_it_and_read_again(self, settings, text, cell):
        """The bytes are those that Flink 2.3.0 gave."""
        row_type = Types.ROW([Types.STRING(), Types.INT()])
        write, read = CsvRowSerializationSchema.Builder(row_type), self.reader(row_type)
        for name, char in settings.items():
            for builder in (write, read):
                if hasattr(builder, name):
                    getattr(builder, name)(char)
        line = cell + settings.get("set_field_delimiter", ",") + "-1"
        written = write.build().serialize(Row(text, -1))
        assert written == (line + settings.get("set_line_delimiter", "\n")).encode()
        if "set_line_delimiter" not in settings:
            assert read.build().deserialize(written) == Row(f0=text, f1=-1)

    @pytest.mark.parametrize(
        ("kind", "value", "cell"),
        [
            (Types.LIST(Types.INT()), [1, -2, 3], "1;-2;3"),
            (Types.LIST(Types.INT()), [*range(12)], '"0;1;2;3;4;5;6;7;8;9;10;11"'),
            (Types.ROW([Types.INT(), Types.STRING()]), Row(1, "a"), "1;a"),
            (Types.ROW([Types.INT(), Types.STRING()]), Row(1, "a b"), '"1;a b"'),
            (Types.ROW([Types.INT(), Types.STRING()]), Row(1, None), "1;"),
            (Types.ROW([Types.INT(), Types.STRING()]), None, ""),
            (Types.BOOLEAN(), True, "true"),
            (Types.BIG_DEC(), Decimal("12345678901234567890.12345"), "12345678901234567890.12345"),
            (Types.BIG_DEC(), Decimal("1E+2"), "1E+2"),
            (Types.BIG_DEC(), Decimal("0.0000001"), "1E-7"),
            (Types.DOUBLE(), 1e10, "1.0E10"),
            (Types.DOUBLE(), 9.99e-4, "9.99E-4"),
            (Types.DOUBLE(), 123456789.125, "1.23456789125E8"),
            (Types.DOUBLE(), 5e-324, "4.9E-324"),
            (Types.DOUBLE(), 7.120236347223045e-307, "7.120236347223045E-307"),
            (Types.FLOAT(), 1e10, "1.0E10"),
            (Types.FLOAT(), 0.1, "0.1"),
            (Types.FLOAT(), 1e-45, "1.4E-45"),
            (Types.BIG_DEC(38, 18), Decimal("12345678901234567890.12345"), "12345678901234567890.123450000000000000"),
            (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\xfb\xef\xbe", '"++++"'),
            (Types.SQL_DATE(), dt.date(1970, 1, 1), "1970-01-01"),
            (Types.SQL_TIME(), dt.time(0), "00:00:00"),
            (Types.SQL_TIMESTAMP(), dt.datetime(1970, 1, 1), '"1970-01-01 00:00:00.0"'),  # noqa: DTZ001
            (Types.SQL_TIMESTAMP(), dt.datetime(1970, 1, 1, 0, 0, 0, 120_000), '"1970-01-01 00:00:00.12"'),  # noqa: DTZ001
        ],
    )
    def test_a_cell_is_written_as_flink_writes_it(self, kind, value, cell):
        """The bytes are those that Flink 2.3.0 gave."""
        schema = CsvRowSerializationSchema.Builder(Types.ROW([Types.INT(), kind])).build()
        assert schema.serialize(Row(1, value)) == f"1,{cell}\n".encode()

    def test_a_row_in_a_cell_stands_in_quotes_where_one_of_its_characters_needs_them(self):
        row_type = Types.ROW([Types.STRING(), Types.ROW([Types.STRING(), Types.STRING()])])
        builder = CsvRowSerializationSchema.Builder(row_type).set_quote_character("'").set_field_delimiter(";")
        schema = builder.set_escape_character("*").set_array_element_delimiter(":").build()
        assert schema.serialize(Row("BEGIN", Row("1", "hello"))) == b"BEGIN;'1:hello'\n"

    def test_what_stands_for_none_has_no_quotes_and_a_line_of_nothing_has_some(self):
        one_text = CsvRowSerializationSchema.Builder(one(Types.STRING()))
        assert one_text.build().serialize(Row("")) == b'""\n'
        assert one_text.set_null_literal("n a").set_line_delimiter("").build().serialize(Row(None)) == b"n a"

    def test_without_quotes_nothing_is_written_that_could_not_be_read(self):
        builder = CsvRowSerializationSchema.Builder(Types.ROW([Types.STRING(), Types.LIST(Types.INT())]))
        builder.disable_quote_character().set_field_delimiter("|").set_array_element_delimiter(" ")
        assert builder.build().serialize(Row("a,b", [1, 2])) == b"a,b|1 2\n"
        with pytest.raises(DataError, match="needs quotes"):
            builder.build().serialize(Row("a|b", []))
        assert builder.set_escape_character("*").build().serialize(Row("a|b", [])) == b"a*|b|\n"

    def test_a_part_with_the_character_between_parts_is_refused(self):
        schema = CsvRowSerializationSchema.Builder(Types.ROW([Types.LIST(Types.STRING())])).build()
        with pytest.raises(DataError, match=r"'a;b' contains ';', the separator"):
            schema.serialize(Row(["a;b"]))

    @pytest.mark.parametrize(
        "type_info", [Types.MAP(Types.INT(), Types.INT()), Types.LIST(Types.LIST(Types.INT())), one(USER)]
    )
    def test_a_type_without_a_form_is_refused_when_the_schema_is_built(self, type_info):
        with pytest.raises(ProgramError, match="a CSV cell cannot represent"):
            self.reader(one(type_info)).build()
        with pytest.raises(ProgramError, match="a CSV cell cannot represent"):
            CsvRowSerializationSchema.Builder(one(type_info)).build()

    @pytest.mark.parametrize("char", ["", "ab"])
    def test_separators_are_single_characters(self, char):
        with pytest.raises(ProgramError, match="single character"):
            self.reader().set_field_delimiter(char)


class TestManyAtOnce:
    def test_one_bad_message_among_many_is_named_or_left_out(self):
        messages = [b'{"user": "u", "amount": %d}' % i for i in range(1000)]
        messages[700], messages[701] = b"broken", None
        column = pa.array(messages, pa.binary())
        with pytest.raises(DataError, match="broken"):
            json_of(USER).build().deserialize_column(column)
        rows = json_of(USER).ignore_parse_errors().build().deserialize_column(column)
        assert [i for i, row in enumerate(rows.to_pylist()) if row is None] == [700, 701]
        assert rows.to_pylist()[702] == {"user": "u", "amount": 702}

    def test_no_messages_are_no_rows(self):
        empty = pa.array([], pa.binary())
        for schema in (json_of(USER).build(), CsvRowDeserializationSchema.Builder(USER).build()):
            assert schema.deserialize_column(empty).equals(USER.to_arrow([]))

    @pytest.mark.parametrize(
        "message",
        [
            b'{"unread": "\xff"}',
            b'{"unread": 01}',
            b'{"unread": [tru]}',
            b'{"unread": NaN}',
            b'{"f": 9223372036854775808}',
            b'{"f": 1',
            b'{"unread": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        ],
        ids=lambda message: message[:24].decode(errors="replace"),
    )
    def test_what_one_by_one_cannot_be_read_cannot_be_read_many_at_once(self, message):
        schema = json_of(one(Types.LONG())).build()
        for messages in ([message], [b'{"f": 1}'] * 200 + [message]):
            with pytest.raises(DataError):
                schema.deserialize(message)
            with pytest.raises(DataError):
                schema.deserialize_column(pa.array(messages, pa.binary()))

    def test_zeros_have_the_sign_that_flink_gives_them(self):
        schema = json_of(one(Types.DOUBLE())).build()
        messages = [b'{"f": -0}', b'{"f": -0.0}', b'{"f": -0e1}']
        found = schema.deserialize_column(pa.array(messages, pa.binary())).field("f").to_pylist()
        assert list(map(str, found)) == ["0.0", "-0.0", "-0.0"]
        assert [str(schema.deserialize(message).f) for message in messages] == list(map(str, found))

    @pytest.mark.parametrize("odd", ["user id", "class", "", "ä", 'a"b', "\n", "\\"])
    def test_names_of_fields_may_be_any_text(self, odd):
        names = [odd, "f0", "f2"]
        schema = json_of(Types.ROW_NAMED(names, [Types.LIST(Types.ROW_NAMED(["a b"], [Types.INT()]))] * 3)).build()
        message = json.dumps({name: [{"a b": place}, {}] for place, name in enumerate(names)}).encode()
        [row] = schema.deserialize_column(pa.array([message])).to_pylist()
        assert row == {name: [{"a b": place}, {"a b": None}] for place, name in enumerate(names)}

    def test_objects_that_lie_across_messages_are_not_put_together(self):
        schema = json_of(Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()])).ignore_parse_errors().build()
        messages = pa.array([b'{"a": 1}{"a": 2}', b'{"a":', b'{"b": 1}}'], pa.binary())
        assert [row and row["a"] for row in schema.deserialize_column(messages).to_pylist()] == [1, None, None]


def test_avro_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(ProgramError, match=r"pip install 'eventide-spark\[avro\]'"):
        AvroSchema.parse_string('"string"')


def test_schemas_travel_and_work_in_a_program():
    text = Types.PRIMITIVE_ARRAY(Types.BYTE())
    read = pickle.loads(pickle.dumps(json_of(USER).build()))
    write = pickle.loads(pickle.dumps(CsvRowSerializationSchema.Builder(USER).build()))
    messages = local_environment().from_collection([b'{"user": "wren", "amount": 3}'], text)
    lines = messages.map(read.deserialize, read.get_produced_type()).map(write.serialize, text)
    assert list(lines.execute_and_collect()) == [b"wren,3\n"]
