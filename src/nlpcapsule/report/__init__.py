"""The report of an evaluation: what a model gets right, where it errs, and how sure it is."""
