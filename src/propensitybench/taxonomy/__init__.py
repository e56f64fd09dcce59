"""The closed lists of domains, capabilities, workspaces, roles, dimensions and authorities."""

from propensitybench.taxonomy.arms import ARMS, ESCALATING, Arm, ArmName
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
    "ARMS",
    "ESCALATING",
    "INTENSITIES",
    "NAMINGS",
    "Arm",
    "ArmName",
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
