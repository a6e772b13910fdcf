"""Systems that represent a document by its words: linear models, trees, fastText."""
