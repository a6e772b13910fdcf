"""Beside the pipeline: comparisons of systems on one data set, with everything needed to repeat them."""
