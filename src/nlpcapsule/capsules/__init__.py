"""From feature maps to label capsules: primary capsules, compression, votes, then `routing`."""
