"""Figures for papers, drawn with matplotlib; slow to import."""

from propensitybench.report.figures.writing import FORMATS, Figure, Format, write_figures

__all__ = ["FORMATS", "Figure", "Format", "write_figures"]
