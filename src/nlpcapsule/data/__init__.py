"""Files become documents and questions; these become tokens, label ids, arrays and batches."""
