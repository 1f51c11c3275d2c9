"""A written packet and the catalog of agents and pipelines: checked, then resolved to stages."""
