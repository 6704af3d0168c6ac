"""The file sink's description: what PyFlink programs build, and what of it Spark can't honour."""

from __future__ import annotations

import warnings

import pytest

from eventide.common import Encoder
from eventide.datastream.connectors.file_system import (
    DefaultRollingPolicy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
)
from eventide.errors import ProgramError

ENCODER = Encoder.simple_string_encoder()


def test_the_defaults_are_honoured_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for policy in (RollingPolicy.default_rolling_policy(), RollingPolicy.on_checkpoint_rolling_policy()):
            sink = (
                FileSink.for_row_format("out", ENCODER)
                .with_output_file_config(OutputFileConfig.builder().build())
                .with_rolling_policy(policy)
                .build()
            )
            assert (sink.base_path, sink.rolling_policy) == ("out", policy)


@pytest.mark.parametrize(
    ("config", "policy", "said"),
    [
        (OutputFileConfig("visits"), RollingPolicy(), "files are named part-<micro-batch>-<number>"),
        (OutputFileConfig(part_suffix=".txt"), RollingPolicy(), "files are named part-<micro-batch>-<number>"),
        (OutputFileConfig(), RollingPolicy.default_rolling_policy(part_size=1), "Spark closes all files"),
    ],
)
def test_what_has_no_effect_is_said(config, policy, said):
    builder = FileSink.for_row_format("out", ENCODER).with_output_file_config(config).with_rolling_policy(policy)
    with pytest.warns(UserWarning, match=said):
        assert builder.build().output_file_config == config


def test_a_rolling_policy_is_built_as_in_flink_1():
    builder = DefaultRollingPolicy.builder().with_rollover_interval(3).with_inactivity_interval(2).with_max_part_size(1)
    assert builder.build() == RollingPolicy(1, 3, 2)
    assert DefaultRollingPolicy.default_rolling_policy(7) == RollingPolicy.default_rolling_policy(7)


def test_a_builder_can_be_used_twice():
    builder = OutputFileConfig.builder().with_part_prefix("a")
    first = builder.build()
    builder.with_part_suffix(".txt")
    assert (first, builder.build()) == (OutputFileConfig("a", ""), OutputFileConfig("a", ".txt"))


def test_an_element_is_a_line_even_when_its_text_ends_one():
    sink = FileSink.for_row_format("out", ENCODER).build()
    assert [sink.row(value) for value in (("é", 1), None, "a\n")] == ["('é', 1)", "None", "a\n"]


@pytest.mark.parametrize("encoder", [Encoder.simple_string_encoder("latin-1"), "UTF-8"])
def test_what_sparks_text_files_cannot_hold_is_refused(encoder):
    with pytest.raises(ProgramError, match=r"UTF-8|needs an Encoder"):
        FileSink.for_row_format("out", encoder)
