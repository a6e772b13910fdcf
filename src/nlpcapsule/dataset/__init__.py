"""Second step: documents and questions as arrays, in batches."""
