"""Compare ranked labels and answers with the truth: metrics, confidence intervals, tables."""
