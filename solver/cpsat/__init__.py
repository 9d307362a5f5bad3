"""The same optimum by constraint programming: any weights, any level, any constraint."""
