"""Documents and answers get scores; ranked labels and ranked answers follow from them."""
