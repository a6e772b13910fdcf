"""Step 1 of the pipeline: files become documents and questions, and text becomes tokens."""
