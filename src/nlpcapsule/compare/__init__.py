"""Train and measure systems side by side on a user's own data."""
