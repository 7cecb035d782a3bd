"""Report spans, metrics and log lines to the monitoring tools of the admin."""
