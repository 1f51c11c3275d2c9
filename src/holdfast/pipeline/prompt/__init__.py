"""The prompt of a stage: template, request, context and attachments, redacted and cut to size."""
