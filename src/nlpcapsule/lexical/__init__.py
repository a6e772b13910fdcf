"""Systems that see a document as the words it holds: linear models, trees, fastText."""
