"""Serve AG-UI 1.0, as `@ag-ui/client` and CopilotKit use it."""
