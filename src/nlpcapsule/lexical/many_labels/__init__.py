"""What labels and documents by the hundred thousand need: an inverted index, and training on the nearest."""
