"""The query that carries out a plan: data sources, stages of operators, and what travels between them."""
