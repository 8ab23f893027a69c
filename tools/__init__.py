"""Scripts for the people who maintain this package; none of them is installed."""
