"""The lists of domains, capabilities, workspaces, roles, dimensions and authorities."""

from propensitybench.taxonomy.arms import ARMS, ESCALATING, Arm, ArmName
from propensitybench.taxonomy.declared import (
    LISTS_FILE,
    DeclaredLists,
    check_fields,
    joined_lists,
    lists_with,
)
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
    in_order,
    naming,
    taxonomy,
)

__all__ = [
    "ARMS",
    "ESCALATING",
    "INTENSITIES",
    "LISTS_FILE",
    "NAMINGS",
    "Arm",
    "ArmName",
    "Capability",
    "Component",
    "DeclaredLists",
    "Dimension",
    "Domain",
    "Naming",
    "Slot",
    "Taxonomy",
    "Workspace",
    "check_fields",
    "in_order",
    "joined_lists",
    "lists_with",
    "naming",
    "taxonomy",
]
