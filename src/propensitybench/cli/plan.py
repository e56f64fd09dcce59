"""``propensitybench run --plan``: what a run would cost, and what it could detect."""

from propensitybench.engine import RunSpec
from propensitybench.engine.plan import RunPlan
from propensitybench.metrics.power import Power
from propensitybench.presentation.words import of_pairs


def show_plan(spec: RunSpec, plan: RunPlan) -> None:
    """Prints the plan of a run; an upper limit where a stopping rule may end it earlier."""
    most, earlier = (
        ("at most ", "; --precision may stop earlier") if spec.stopping_rule is not None else ("", "")
    )
    pairs = f" {of_pairs(plan.pairs, len(spec.selection.namings))}" if spec.shard is None else ""
    print(f"tasks:         {most}{plan.tasks:,}{pairs}, {plan.finished:,} of them finished{earlier}")
    print(f"calls:         {plan.calls.low:,} to {plan.calls.high:,}")
    print(f"input tokens:  {plan.input_tokens.low:,} to {plan.input_tokens.high:,} (mostly cacheable)")
    print(f"output tokens: {plan.output_tokens.low:,} to {plan.output_tokens.high:,}, without reasoning")
    if plan.usd is None:
        print("cost:          unknown: no price is known for this model; give --price IN,OUT")
    else:
        print(f"cost:          ${plan.usd.low:,.2f} to ${plan.usd.high:,.2f} ({plan.price_source})")
    print(f"basis:         {plan.basis}")
    compared = "namings or models" if len(spec.selection.namings) > 1 else "models"
    for power in plan.power:
        print(power_line(power, compared))


def power_line(power: Power, compared: str) -> str:
    """What a run can detect if the model has an assumed propensity, in two lines."""
    label = f"if {100 * power.propensity:g} %:"
    half = power.half_width
    width = "no 95 % interval" if half is None else f"95 % interval +- {100 * half:.1f} points"
    changes = [
        f"{sign}{100 * change:.1f}"
        for sign, change in (("+", power.increase), ("-", power.decrease))
        if change is not None
    ]
    detects = f"{' or '.join(changes)} points" if changes else "no difference"
    return (
        f"{label:<14} {width}; detects {detects} between {compared}\n"
        f"{'':<14} (80 % power, ICC {power.icc:g}, correlation {power.correlation:g})"
    )
