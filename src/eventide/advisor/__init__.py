"""How large must the bound be? Measures the disorder of data, and recommends a watermark strategy for them."""

from eventide.advisor.advice import Advice, Choice, Early
from eventide.advisor.advising import advise
from eventide.advisor.disorder import Disorder, Split
from eventide.advisor.reading import Topic
from eventide.runtime.observation.histograms import DurationHistogram

__all__ = ["advise", "Advice", "Choice", "Early", "Disorder", "Split", "DurationHistogram", "Topic"]
