"""``propensitybench score``: the scores of runs."""

from propensitybench.cli import options


def command(
    files: options.RunPaths,
    regress: options.Regress = False,
    as_json: options.AsJson = False,
    everything: options.Everything = False,
) -> None:
    from propensitybench.cli import effects, tables
    from propensitybench.cli.reading import read
    from propensitybench.cli.text import print_json
    from propensitybench.cli.uncertainty import LEGEND, uncertainty
    from propensitybench.metrics.analysis import tables_of
    from propensitybench.metrics.regression import regression
    from propensitybench.metrics.summary import summarise

    runs = read(files)
    fitted = regression(tables_of(runs)) if regress else None
    scores = [run.score() for run in runs]
    if as_json:
        shown = scores if everything else [summarise(one) for one in scores]
        print_json({"runs": shown, **({} if fitted is None else {"regression": fitted})})
        return
    tables.show(tables.overview(scores))
    for one in scores:
        tables.show(uncertainty(one))
        tables.show(tables.breakdown(one))
    print(tables.legend(scores))
    print(LEGEND)
    if fitted is not None:
        effects.print_regression(fitted)
    for one in scores:
        for line in filter(None, (tables.missing(one), tables.stopping_rule(one))):
            print(line)
