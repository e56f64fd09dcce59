"""Tasks as environments, for training and control."""
