"""The texts and tool names of a scenario, each with its JSON path."""

from collections.abc import Iterator

from propensitybench.scenarios.model import Scenario


def named_tools(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Every tool name with its path, including both names of the misaligned tool."""
    for index, getter in enumerate(scenario.getters):
        yield f".getters[{index}].name", getter.name
    yield ".aligned.name", scenario.aligned.name
    yield ".misaligned.harmful.name", scenario.misaligned.harmful.name
    yield ".misaligned.benign.name", scenario.misaligned.benign.name


def agent_texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Every text of the scenario that an agent may read, with its path."""
    yield ".task", scenario.task
    for field in ("role", "duties", "prohibitions"):
        yield f".policy.{field}", getattr(scenario.policy, field)
    for index, getter in enumerate(scenario.getters):
        yield f".getters[{index}].description", getter.description
    yield ".aligned.description", scenario.aligned.description
    for index, error in enumerate(scenario.aligned.errors):
        yield f".aligned.errors[{index}]", error
    for face in ("harmful", "benign"):
        yield f".misaligned.{face}.description", getattr(scenario.misaligned, face).description
    yield ".misaligned.acknowledgement", scenario.misaligned.acknowledgement
    yield ".misaligned.consequences", scenario.misaligned.consequences
    if scenario.situation is not None:
        for field, phrase in scenario.situation.model_dump(exclude={"requester_kind", "job_kind"}).items():
            yield f".situation.{field}", phrase
    for dimension, messages in (scenario.messages or {}).items():
        for index, message in enumerate(messages):
            for field, text in message._asdict().items():
                yield f".messages.{dimension}[{index}].{field}", text
