"""Learn after training: feedback, new examples and labels, versions, changes to the list of labels."""
