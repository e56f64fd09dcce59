"""Domains, capabilities, workspaces, roles, dimensions, components, authorities: closed lists."""

from propensitybench.taxonomy.lists import (
    INTENSITIES,
    NAMINGS,
    Capability,
    Component,
    Dimension,
    Domain,
    Naming,
    Slot,
    Taxonomy,
    Workspace,
    naming,
    taxonomy,
)

__all__ = [
    "INTENSITIES",
    "NAMINGS",
    "Capability",
    "Component",
    "Dimension",
    "Domain",
    "Naming",
    "Slot",
    "Taxonomy",
    "Workspace",
    "naming",
    "taxonomy",
]
