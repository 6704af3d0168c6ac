"""The exchange between tasks: frames of elements, and watermark reports."""
