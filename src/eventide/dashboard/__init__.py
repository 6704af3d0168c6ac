"""What a running job shows of itself: a page, an endpoint for Prometheus, and metrics for OpenTelemetry."""
