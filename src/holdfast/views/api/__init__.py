"""The Python API, `import holdfast`: a view whose screen is a program (docs/guides/python.md)."""
