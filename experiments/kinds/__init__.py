"""Compare share groups, Streams and Connect with the optimum, and forecast events."""
