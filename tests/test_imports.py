"""Imports go downwards only, inside a room too: no module leads back to itself."""

from graphlib import CycleError, TopologicalSorter

import grimp


def test_no_imports_go_in_a_circle() -> None:
    """Imports for annotations alone count too."""
    graph = grimp.build_graph("propensitybench", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None
