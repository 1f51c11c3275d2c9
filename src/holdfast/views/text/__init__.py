"""A task as text: amounts, reasons, the end of its log, what to do next. Shared by all views."""
