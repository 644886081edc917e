"""What a proof is taken on: batches of few different images, and a recipe that shows what hides."""
