"""`python -m contracts`: write the schemas and the generated parts of the pages in docs."""

from __future__ import annotations

from contracts import manifest_yaml, pages, schema

if __name__ == "__main__":
    pages.write()
    schema.write()
    manifest_yaml.write()
