"""Train systems on a user's data and compare them."""
