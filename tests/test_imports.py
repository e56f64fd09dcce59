"""Imports go downwards only, inside a room too: no module leads back to itself."""

from graphlib import CycleError, TopologicalSorter

import grimp


def test_no_imports_go_in_a_circle() -> None:
    """As far as they happen when the program runs: what is imported for annotations alone does not count."""
    graph = grimp.build_graph("propensitybench", cache_dir=None, exclude_type_checking_imports=True)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None
