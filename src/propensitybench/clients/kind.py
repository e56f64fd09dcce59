"""What a kind of client knows about the models that it serves, before a request is sent."""

from collections.abc import Mapping, Sequence

from propensitybench.clients.client import Client
from propensitybench.clients.dialect import ChatDialect
from propensitybench.clients.options import ModelOptions, RequestLimits


class ClientKind:
    """A kind of client. Another protocol is a subclass in a file of its own and an entry in `engine.agents`.

    Attributes:
        providers: the first parts of its models' addresses.
    """

    providers: Sequence[str] = ()

    def serves(self, model: str, base_url: str | None) -> bool:
        """Whether the model at that address, and base URL if given, is one of its own."""
        return base_url is None and model.partition("/")[0] in self.providers

    def client(
        self,
        model: str,
        options: ModelOptions,
        transport: RequestLimits,
        environment: Mapping[str, str],
        base_urls: Sequence[str],
    ) -> Client:
        """A client of a model.

        Args:
            model: its address.
            options: the sampling options, and the base URL if there is one.
            transport: how requests are sent.
            environment: where keys are looked up.
            base_urls: where several servers have the model; empty is the base URL of the options.

        Raises:
            BadInput: a missing key, or options that cannot be used.
        """
        raise NotImplementedError

    def check(self, model: str, options: ModelOptions) -> None:
        """Checks what needs no key and no connection; raises `BadInput` for what `client` would refuse."""

    def dialect_of(self, model: str, base_url: str | None) -> ChatDialect | None:  # noqa: ARG002
        """How requests to a model are written; None if there is only one form."""
        return None

    def is_free(self, model: str) -> bool:  # noqa: ARG002
        """Whether a model's tokens cost nothing, because it runs on this machine."""
        return False

    def variables(self, model: str, base_url: str | None) -> Sequence[str]:  # noqa: ARG002
        """The environment variables that a client of a model reads, proxies aside."""
        return ()
