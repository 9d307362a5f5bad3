"""Times, as ratios within one run: `make bench` prints them, no test asserts them."""
