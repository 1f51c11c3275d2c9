"""Parts that several adapters share: stream formats, API errors, reset times, todo lists."""
