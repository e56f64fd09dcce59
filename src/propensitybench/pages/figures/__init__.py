"""Figures for papers, drawn with matplotlib; slow to import."""

from propensitybench.pages.figures.writing import FORMATS, Figure, Format, write_figures

__all__ = ["FORMATS", "Figure", "Format", "write_figures"]
