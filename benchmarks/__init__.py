"""Speed and size as ratios against a baseline measured in the same run: ``python -m benchmarks [name…]``."""
