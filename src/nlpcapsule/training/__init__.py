"""Fifth step: the training loop, its checkpoints, and the whole way from documents to a model."""
