"""Views of a running job: a page, an endpoint for Prometheus, and metrics for OpenTelemetry."""
