"""A written packet (`manifest.yaml`) and the catalog of agents and pipelines, checked and resolved to stages."""
