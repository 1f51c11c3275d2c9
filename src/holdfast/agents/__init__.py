"""ONE FILE PER CLI: how each agent is launched, resumed, read and judged. Adapters never import each other."""
