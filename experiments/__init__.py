"""Greedy against optimum: real groups in, comparisons, studies, reports and plans out."""
