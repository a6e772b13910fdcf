"""Search for good settings: trainings with different settings, compared on held-out documents."""
