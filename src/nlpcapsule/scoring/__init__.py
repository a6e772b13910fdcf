"""Score documents and answers, and turn the scores into ranked labels and answers."""
