"""Settings that make no difference are rows of a table: its methods keep what they are given, and say so once."""

import inspect
import warnings

import pytest

from eventide.common.accepted import accept, accepted, always, sets, setting, switch


class Settings:
    set_timeout, get_timeout = setting("timeout", "timeout_ms", 100, "nothing waits")
    set_limit, get_limit = setting("limit", "limit", 3)
    enable_checks, are_checks_enabled = setting("checks", "enabled", False, "nothing is checked", value=True)
    enable_reuse, disable_reuse, is_reuse_enabled = switch("reuse", False, "nothing is shared")
    enable_cleaning, disable_cleaning, is_cleaning_enabled = switch("cleaning", True, "nothing is clean")
    start_chain = sets("start_chain", "chains start by themselves")
    is_enabled = always(True, "each batch is one")


@pytest.mark.filterwarnings("ignore:.* has no effect")
def test_an_argument_is_kept_by_its_place_or_its_name() -> None:
    settings = Settings()
    assert settings.get_timeout() == 100
    assert settings.set_timeout(5) is settings
    assert settings.get_timeout() == 5
    assert settings.set_timeout(timeout_ms=6).get_timeout() == 6
    assert settings.enable_checks().are_checks_enabled()
    assert not settings.enable_checks(enabled=False).are_checks_enabled()
    assert settings.enable_reuse().is_reuse_enabled()
    assert not settings.enable_reuse().disable_reuse().is_reuse_enabled()
    assert settings.is_cleaning_enabled()
    assert not settings.disable_cleaning().is_cleaning_enabled()
    assert accepted(settings.start_chain(), "start_chain", False)
    assert Settings().get_timeout() == 100


def test_arguments_that_do_not_fit_are_refused_as_by_any_method() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'timeout_ms'"):
        Settings().set_timeout()
    with pytest.raises(TypeError, match="unexpected keyword argument 'timeout'"):
        Settings().set_timeout(5, timeout=5)
    with pytest.raises(TypeError, match="too many positional arguments"):
        Settings().get_timeout(5)  # type: ignore[call-arg]


def test_each_object_warns_once_of_a_setting_and_never_of_what_is_so_anyway() -> None:
    settings = Settings()
    with pytest.warns(UserWarning, match=r"^timeout has no effect: nothing waits$") as caught:
        settings.set_timeout(5).set_timeout(6)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settings.disable_reuse().enable_cleaning().enable_checks(False).set_limit(7)
        settings.set_timeout(7)
        Settings().set_timeout(100)
    for sets_another in (lambda: Settings().set_timeout(5), settings.enable_reuse, settings.start_chain):
        with pytest.warns(UserWarning, match="has no effect"):
            sets_another()


def test_a_method_has_its_signature_and_says_how_it_differs() -> None:
    assert str(inspect.signature(Settings.set_timeout)) == "(self, timeout_ms)"
    assert str(inspect.signature(Settings.enable_checks)) == "(self, enabled=True)"
    assert str(inspect.signature(Settings().is_enabled)) == "()"
    assert Settings.set_timeout.__doc__ == "Without effect: nothing waits."
    assert Settings.get_timeout.__doc__ == "Returns the value that was set, which has no effect."
    assert Settings.disable_reuse.__doc__ == "Says what is so in any case."
    assert Settings.enable_cleaning.__doc__ == "Says what is so in any case."
    assert Settings.is_enabled.__doc__ == "Always `True`: each batch is one."
    assert Settings().is_enabled()


def test_a_setting_may_be_kept_without_a_method() -> None:
    settings = Settings()
    assert accepted(settings, "timeout", 0) == 0
    assert accept(settings, "timeout", 3).get_timeout() == 3
