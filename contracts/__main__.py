"""`python -m contracts`: write the schemas and the generated parts of the pages in docs/contracts."""

from __future__ import annotations

from contracts import pages, schema

if __name__ == "__main__":
    pages.write()
    schema.write()
