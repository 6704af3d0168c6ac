"""Settings that make no difference are methods made of signatures: they keep what they are given, and say so once."""

import inspect
import warnings
from typing import Self

import pytest

from eventide.common.accepted import accept, accepted, always, what_was_set, without_effect


class Settings:
    @without_effect("timeout", "nothing waits")
    def set_timeout(self, timeout_ms: int) -> Self: ...  # type: ignore[empty-body]

    @what_was_set("timeout", 100)
    def get_timeout(self) -> int: ...  # type: ignore[empty-body]

    @without_effect("reuse", "nothing is shared")
    def enable_reuse(self, enabled: bool = True) -> Self: ...  # type: ignore[empty-body]

    @without_effect("reuse", value=False)
    def disable_reuse(self) -> Self: ...  # type: ignore[empty-body]

    @what_was_set("reuse", False)
    def is_reuse_enabled(self) -> bool: ...  # type: ignore[empty-body]

    @always(True, "each batch is one")
    def is_enabled(self) -> bool: ...  # type: ignore[empty-body]


@pytest.mark.filterwarnings("ignore:.* has no effect")
def test_an_argument_is_kept_by_its_place_or_its_name() -> None:
    settings = Settings()
    assert settings.get_timeout() == 100
    assert settings.set_timeout(5) is settings
    assert settings.get_timeout() == 5
    assert settings.set_timeout(timeout_ms=6).get_timeout() == 6
    assert settings.enable_reuse().is_reuse_enabled()
    assert not settings.enable_reuse(enabled=False).is_reuse_enabled()
    assert not settings.enable_reuse().disable_reuse().is_reuse_enabled()
    assert Settings().get_timeout() == 100


def test_arguments_that_do_not_fit_are_refused_as_by_any_method() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'timeout_ms'"):
        Settings().set_timeout()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'timeout'"):
        Settings().set_timeout(timeout=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional argument"):
        Settings().get_timeout(5)  # type: ignore[call-arg]


def test_each_object_warns_once_of_a_setting_and_never_of_what_is_so_anyway() -> None:
    settings = Settings()
    with pytest.warns(UserWarning, match=r"^timeout has no effect: nothing waits$") as caught:
        settings.set_timeout(5).set_timeout(6)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settings.disable_reuse()
        settings.set_timeout(7)
    with pytest.warns(UserWarning, match="timeout has no effect"):
        Settings().set_timeout(5)


def test_a_method_has_its_signature_and_says_how_it_differs() -> None:
    assert str(inspect.signature(Settings.set_timeout)) == "(self, timeout_ms: int) -> Self"
    assert Settings.set_timeout.__doc__ == "Without effect: nothing waits."
    assert Settings.disable_reuse.__doc__ == "Says what is so in any case."
    assert Settings.is_enabled.__doc__ == "Always `True`: each batch is one."
    assert Settings().is_enabled()


def test_a_setting_may_be_kept_without_a_method() -> None:
    settings = Settings()
    assert accepted(settings, "timeout", 0) == 0
    assert accept(settings, "timeout", 3).get_timeout() == 3
