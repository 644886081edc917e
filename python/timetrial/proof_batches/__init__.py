"""What a proof is taken on: batches without decisions on the edge, and a recipe that shows what hides."""
