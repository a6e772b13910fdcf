"""Step 7 of the pipeline: ranked labels and answers beside the truth → figures, intervals, tables."""
