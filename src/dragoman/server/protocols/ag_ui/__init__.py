"""AG-UI 1.0, as `@ag-ui/client` and CopilotKit speak it."""
