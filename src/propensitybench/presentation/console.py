"""A terminal on which whatever is printed is safe."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from propensitybench.escaping import visible


class SafeConsole(Console):
    """A console that escapes unsafe characters in whatever is printed on it."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of something printable; those with controls are rich's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))
