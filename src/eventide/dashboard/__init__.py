"""Views of a running job: a chart in a notebook, a page, an endpoint for Prometheus, and metrics for OpenTelemetry."""

from eventide.dashboard.notebook import watch

__all__ = ["watch"]
