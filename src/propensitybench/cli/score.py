"""``propensitybench score``: the scores of runs."""

from propensitybench.cli import options


def command(
    files: options.RunPaths,
    regress: options.Regress = False,
    hierarchical: options.Hierarchical = False,
    as_json: options.AsJson = False,
    everything: options.Everything = False,
) -> None:
    from propensitybench.cli import effects, hierarchy, tables
    from propensitybench.cli.reading import read
    from propensitybench.cli.text import print_json
    from propensitybench.cli.uncertainty import LEGEND, uncertainty
    from propensitybench.metrics.analysis import tables_of
    from propensitybench.metrics.regression import regression
    from propensitybench.metrics.summary import summarise

    runs = read(files)
    fitted = regression(tables_of(runs)) if regress else None
    fits = hierarchy.fits(runs) if hierarchical else {}
    scores = [run.score() for run in runs]
    if as_json:
        shown = scores if everything else [summarise(one) for one in scores]
        extra = {"regression": fitted} if fitted is not None else {}
        print_json({"runs": shown, **extra, **({"hierarchical": fits} if hierarchical else {})})
        return
    tables.show(tables.overview(scores))
    for one in scores:
        tables.show(uncertainty(one))
        tables.show(tables.breakdown(one))
        if reports := tables.conduct(one):
            tables.show(reports)
    print(tables.legend(scores))
    print(LEGEND)
    if fitted is not None:
        effects.print_regression(fitted)
    hierarchy.print_fits(fits)
    for line in tables.remarks(scores):
        print(line)
    for line in filter(None, map(tables.stopping_rule, scores)):
        print(line)
