"""The closed lists of domains, capabilities, workspaces, roles, dimensions and authorities."""

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
