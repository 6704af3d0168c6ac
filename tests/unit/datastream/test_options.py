"""Flink's options by name: what an environment takes of them."""

import warnings

import pytest

from eventide.common import Configuration
from eventide.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from eventide.datastream._options import split_options
from eventide.errors import ProgramError
from eventide.testing import local_environment


@pytest.fixture
def env():
    return local_environment()


def test_known_options_set_what_they_name(env):
    options = Configuration.from_dict(
        {
            "parallelism.default": "3",
            "pipeline.max-parallelism": "16",
            "pipeline.auto-watermark-interval": "2 s",
            "pipeline.auto-generate-uids": "false",
            "pipeline.global-job-parameters": "limit:5, name:orders",
            "execution.runtime-mode": "batch",
            "execution.checkpointing.dir": "s3a://checkpoints",
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert env.configure(options) is env
    assert (env.get_parallelism(), env.get_max_parallelism()) == (3, 16)
    assert env.get_config().get_auto_watermark_interval() == 2_000
    assert not env.get_config().has_auto_generated_uids_enabled()
    assert env.get_config().get_global_job_parameters() == {"limit": "5", "name": "orders"}
    assert env._settings(None).runtime_mode is RuntimeExecutionMode.BATCH
    assert env.get_checkpoint_config().get_checkpoint_storage_dir() == "s3a://checkpoints"


@pytest.mark.parametrize(
    ("text", "ms"),
    [("7", 7), ("7 millis", 7), ("2 secs", 2_000), ("2SECONDS", 2_000), ("3 minutes", 180_000), ("1 hour", 3_600_000)],
)
def test_a_length_of_time_has_any_of_flinks_units(env, text, ms):
    env.configure(Configuration().set_string("pipeline.auto-watermark-interval", text))
    assert env.get_config().get_auto_watermark_interval() == ms


def test_what_is_not_named_stays_as_it_was(env):
    env.set_parallelism(7).configure(Configuration().set_string("pipeline.auto-watermark-interval", "100"))
    assert env.get_parallelism() == 7


def test_one_warning_names_all_options_without_effect(env):
    options = Configuration().set_string("state.backend.type", "rocksdb").set_string("python.fn-execution.x", "1")
    with pytest.warns(UserWarning, match="have no effect") as caught:
        env.configure(options.set_integer("parallelism.default", 2))
    assert [str(w.message).partition(" have no effect")[0] for w in caught] == [
        "python.fn-execution.x, state.backend.type"
    ]


def test_a_session_in_place_of_a_configuration_is_said():
    with pytest.raises(ProgramError, match=r"takes a session as spark=\.\.\., and needs a Configuration here"):
        StreamExecutionEnvironment.get_execution_environment(object())


def test_an_option_of_sparks_that_comes_too_late_says_where_it_belongs(env):
    options = Configuration().set_string("spark.sql.shuffle.partitions", "3")
    with pytest.warns(UserWarning, match=r"partitions has no effect: .* give them to get_execution_environment"):
        env.configure(options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1,'b':'x,y'", {"a": "1", "b": "x,y"}),
        ('a : 1 , "b c" : "it\'s, x" ,', {"a": "1", "b c": "it's, x"}),
        ("'a:x,y',b:", {"a": "x,y", "b": ""}),
        ("url:http://x:1,quote:'it''s'", {"url": "http://x:1", "quote": "it's"}),
        ("owner:it's,other:that's", {"owner": "it's", "other": "that's"}),
        (" ", {}),
    ],
)
def test_job_parameters_may_have_commas_in_quotes(env, text, expected):
    env.configure(Configuration().set_string("pipeline.global-job-parameters", text))
    assert env.get_config().get_global_job_parameters() == expected


@pytest.mark.parametrize("text", ["a", "a:1,b", "'a,b'", "a:1,,b:2", "a:'x,y"])
def test_job_parameters_without_a_colon_are_refused(env, text):
    with pytest.raises(ProgramError, match=r"global-job-parameters.* an entry without a colon; write a:1"):
        env.configure(Configuration().set_string("pipeline.global-job-parameters", text))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parallelism.default", "many"),
        ("pipeline.auto-watermark-interval", "2 weeks"),
        ("pipeline.auto-generate-uids", "perhaps"),
        ("execution.runtime-mode", "slowly"),
    ],
)
def test_a_value_that_does_not_fit_is_named(env, key, value):
    with pytest.raises(ProgramError, match=f"the option '{key}' cannot be '{value}'"):
        env.configure(Configuration().set_string(key, value))


def test_options_of_spark_are_for_its_session():
    options = Configuration().set_string("spark.driver.memory", "2g").set_string("parallelism.default", "2")
    of_spark, others = split_options(options)
    assert (of_spark.key_set(), others.key_set()) == ({"spark.driver.memory"}, {"parallelism.default"})


def test_the_parallelism_of_the_configuration_is_that_of_the_environment(env):
    config = env.get_config()
    assert config.get_parallelism() == config.PARALLELISM_DEFAULT
    config.set_parallelism(5).set_max_parallelism(8)
    assert (env.get_parallelism(), env.get_max_parallelism()) == (5, 8)
    default = local_environment().get_parallelism()
    config.set_parallelism(config.PARALLELISM_DEFAULT)
    assert env.get_parallelism() == default
    with pytest.raises(ProgramError, match="a parallelism must be a whole number"):
        config.set_parallelism(0)
