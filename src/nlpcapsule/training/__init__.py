"""The training loop, its checkpoints, and the steps from documents to a trained model."""
