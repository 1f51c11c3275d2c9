"""Generate docs/contracts: the JSON Schemas and the generated parts of the pages.

Not part of the installed program.
"""
