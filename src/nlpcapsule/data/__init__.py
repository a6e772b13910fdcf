"""Read documents and questions from files, and turn them into tokens, label ids, arrays and batches."""
