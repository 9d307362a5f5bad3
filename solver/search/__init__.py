"""Search for low loads and few moves in groups with different weights."""
