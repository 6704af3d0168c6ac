"""Restart strategies: what they are told, by functions or by options, and what they say after each failure."""

import warnings
from datetime import timedelta

import pytest

from eventide.common import Configuration, RestartStrategies
from eventide.errors import ProgramError
from eventide.testing import local_environment


@pytest.fixture
def env():
    return local_environment()


def test_restart_strategies_say_what_they_are():
    fixed = RestartStrategies.fixed_delay_restart(3, timedelta(seconds=2))
    assert (fixed.get_restart_attempts(), fixed.get_delay_between_attempts_interval()) == (3, timedelta(seconds=2))
    rate = RestartStrategies.failure_rate_restart(5, 60_000, 500)
    assert rate.get_max_failure_rate() == 5
    assert rate.get_failure_interval() == timedelta(minutes=1)
    assert rate.get_delay_between_attempts_interval() == timedelta(milliseconds=500)
    assert "5 failures within interval 0:01:00" in rate.get_description()
    assert RestartStrategies.no_restart() != RestartStrategies.fall_back_restart()
    assert RestartStrategies.no_restart().get_description() == "Restart deactivated."
    with pytest.raises(ProgramError, match="must be a number of milliseconds or a timedelta, 0 or more, not 'soon'"):
        RestartStrategies.fixed_delay_restart(3, "soon")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RestartStrategies.fixed_delay_restart(-1, 0), "restart_attempts must be a whole number, 0 or more"),
        (lambda: RestartStrategies.fixed_delay_restart(1, -5), "delay_between_attempts_interval .* 0 or more"),
        (lambda: RestartStrategies.failure_rate_restart(0, 1, 1), "max_failure_rate must be a whole number, 1 or more"),
        (lambda: RestartStrategies.exponential_delay_restart(0), "initial_backoff must be above 0"),
        (lambda: RestartStrategies.exponential_delay_restart(9, 8), "not above max_backoff, 8, and is 9"),
        (lambda: RestartStrategies.exponential_delay_restart(backoff_multiplier=1), "backoff_multiplier must be above"),
        (lambda: RestartStrategies.exponential_delay_restart(jitter_factor=1.1), "jitter_factor must be between 0 and"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ProgramError, match=message):
        make()


def test_the_settings_of_a_job_take_its_restart_strategy_too(env):
    strategy = RestartStrategies.fixed_delay_restart(3, 10_000)
    assert env.get_config().set_restart_strategy(strategy) is env.get_config()
    assert env.get_restart_strategy() is strategy
    env.set_restart_strategy(RestartStrategies.no_restart())
    assert env.get_config().get_restart_strategy() == RestartStrategies.no_restart()
    with pytest.raises(ProgramError, match="set_restart_strategy needs a strategy of RestartStrategies"):
        env.get_config().set_restart_strategy("always")


def test_a_fixed_delay_is_given_so_many_times_in_the_life_of_a_job():
    backoff = RestartStrategies.fixed_delay_restart(2, timedelta(seconds=1)).backoff()
    assert [backoff(at) for at in (0, 10**9, 10**12)] == [1_000, 1_000, None]


def test_each_job_counts_for_itself():
    strategy = RestartStrategies.fixed_delay_restart(1, 7)
    assert [strategy.backoff()(0) for _ in range(2)] == [7, 7]


@pytest.mark.parametrize(("third", "expected"), [(1_000, None), (1_001, 5)])
def test_a_failure_rate_counts_what_is_within_the_interval_as_flink_does(third, expected):
    backoff = RestartStrategies.failure_rate_restart(2, 1_000, 5).backoff()
    assert [backoff(at) for at in (0, 500, third)] == [5, 5, expected]


def test_an_exponential_delay_grows_to_its_limit_and_begins_anew_after_a_good_while():
    backoff = RestartStrategies.exponential_delay_restart(100, 400, 2.0, 1_000, 0.0).backoff()
    assert [backoff(at) for at in (0, 1, 2, 3, 1_402, 2_802)] == [100, 200, 400, 400, 400, 100]


def test_its_attempts_are_counted_until_it_has_run_well():
    backoff = RestartStrategies.exponential_delay_restart(10, 10, 2.0, 100, 0.0, 1).backoff()
    assert [backoff(at) for at in (0, 50, 500, 560)] == [10, None, 10, None]


@pytest.mark.parametrize(("part", "expected"), [(-0.25, 75), (0.25, 125)])
def test_a_delay_is_varied_by_its_jitter_alone(part, expected):
    strategy = RestartStrategies.exponential_delay_restart(100, 1_000, 2.0, 10, 0.25)
    assert strategy.backoff(lambda low, high: low if part < 0 else high)(0) == expected


def test_no_delay_is_above_the_limit():
    strategy = RestartStrategies.exponential_delay_restart(100, 100, 2.0, 10, 0.5)
    assert strategy.backoff(lambda low, high: high)(0) == 100


def in_force(env, **options):
    given = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.configure(Configuration.from_dict(given))
    return env._settings(None).restart_strategy


def test_without_a_word_a_job_is_not_started_again(env):
    assert env.get_restart_strategy() == RestartStrategies.fall_back_restart()
    assert in_force(env).backoff()(0) is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"restart_strategy__type": "none"}, RestartStrategies.no_restart()),
        ({"restart_strategy": "off"}, RestartStrategies.no_restart()),
        ({"restart_strategy__type": "fixed-delay"}, RestartStrategies.fixed_delay_restart(1, 1_000)),
        (
            {"restart_strategy__type": "failurerate", "restart_strategy__failure_rate__failure_rate_interval": "2 min"},
            RestartStrategies.failure_rate_restart(1, 120_000, 1_000),
        ),
        (
            {"restart_strategy__type": "exponential-delay", "restart_strategy__exponential_delay__max_backoff": "5 s"},
            RestartStrategies.exponential_delay_restart(max_backoff=5_000),
        ),
    ],
)
def test_options_describe_a_strategy(env, options, expected):
    assert in_force(env, **options) == expected


def test_what_the_program_sets_takes_precedence_until_it_falls_back(env):
    env.set_restart_strategy(RestartStrategies.no_restart())
    assert in_force(env, restart_strategy__type="fixed-delay") == RestartStrategies.no_restart()
    env.set_restart_strategy(RestartStrategies.fall_back_restart())
    assert env._settings(None).restart_strategy == RestartStrategies.fixed_delay_restart(1, 1_000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restart_strategy__type": "sometimes"}, "'restart-strategy.type' cannot be 'sometimes'; there are none, fix"),
        (
            {"restart_strategy__type": "fixed-delay", "restart_strategy__fixed_delay__delay": "soon"},
            "the option 'restart-strategy.fixed-delay.delay' cannot be 'soon'",
        ),
    ],
)
def test_an_option_that_is_none_is_refused_by_its_name(env, options, message):
    with pytest.raises(ProgramError, match=message):
        in_force(env, **options)


def test_only_a_strategy_is_one(env):
    with pytest.raises(ProgramError, match="needs a strategy of RestartStrategies, not 3"):
        env.set_restart_strategy(3)
