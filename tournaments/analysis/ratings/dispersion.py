"""The dispersion of results: their variance compared with that of independent games.

Two games of a pair start from the same opening.  If it favours the first mover, each bot tends to win one:
the pair's score varies less than that of two independent games.  If it suits one bot's style, that bot tends
to win both, and the score varies more.  The likelihood takes all games for independent; this module computes
the factor by which the variance of a rating has to be multiplied.

The factor compares two estimates of a rating's variance, as the sandwich estimator does (Huber 1967; for
clusters Liang and Zeger 1986), but only the products of different games of one pair are estimated; of single
games the variance is known from the model.  With few pairs the factor is drawn towards 1, and a bot's own
towards that of all bots.
"""

import numpy as np

from tournaments.analysis.evidence import Evidence
from tournaments.analysis.ratings.bradley_terry import Array, Likelihood, solve

PAIRS_FOR_INDEPENDENCE = 2.0
"""Imaginary pairs of independent games that are added to those seen, lest a handful decide.  In the
simulations of docs/statistics.md, 2 and 4 cover alike."""

PAIRS_FOR_LIKENESS = 60.0
"""A bot's own factor counts half when it played so many pairs; below that, the one of all bots counts more.
From n pairs it is known to about 1 / sqrt(n), 13% for 60; bots are unlikely to differ by less than that."""

LEAST_FACTOR = 0.02
"""Openings that decide every game let the estimate go to zero; intervals never get narrower than by this
factor's square root, a seventh.  A choice."""

LEAST_KEPT = 0.5
"""With hardly more games than bots, fitting takes more than half of the residuals; no more than that is made
good."""


def variance_factors(model: Likelihood, peak: Array, evidence: Evidence, contrasts: Array) -> Array:
    """Return the factors by which to multiply the model's variance of each contrast; (contrasts,).

    ``contrasts`` is (contrasts, parameters).  All factors are 1 if no cluster has two games.
    """
    shared = _products_within_clusters(model, peak, evidence)
    if shared is None:
        return np.ones(len(contrasts))
    products, pairs, pairs_of = shared
    curvature = model.at(peak[None]).curvature[0]
    information = model.information(peak)
    directions = solve(curvature, contrasts.T).T
    expected = np.einsum("cp,pq,cq->c", directions, information, directions)
    excess = np.einsum("cp,pq,cq->c", directions, products, directions)
    # Fitting takes away a part of the residuals' products, by and large this one.
    fitted = float(np.trace(solve(curvature, information))) / float(evidence.weight.sum())
    kept = max(1 - fitted, LEAST_KEPT)
    strengths = np.abs(contrasts[:, : model.results.players])
    of_bots = strengths.max(axis=1) > 0
    own = 1 + np.divide(excess, expected, out=np.zeros(len(contrasts)), where=expected > 0)
    total = float(expected[of_bots].sum())
    common = 1 + float(excess[of_bots].sum()) / total if total > 0 else 1.0
    # Pairs that the contrast's main bot played, or the one of two with fewer; advantage and draws have their
    # own factor from all pairs.
    main = strengths >= strengths.max(axis=1, keepdims=True) - 1e-9
    known = np.where(main, pairs_of, np.inf).min(axis=1)
    trust = np.where(of_bots, known / (known + PAIRS_FOR_LIKENESS), 1.0)
    seen = (trust * own + (1 - trust) * common) / kept
    drawn = (pairs * seen + PAIRS_FOR_INDEPENDENCE) / (pairs + PAIRS_FOR_INDEPENDENCE)
    factors: Array = np.maximum(drawn, LEAST_FACTOR)
    return factors


def _products_within_clusters(
    model: Likelihood, peak: Array, evidence: Evidence
) -> tuple[Array, float, Array] | None:
    """Return sums of products of the slopes of different games of one cluster, (parameters, parameters).

    The weighted numbers of clusters of two or more games follow, in all and for each bot.  None without any.
    """
    size = np.bincount(evidence.cluster, minlength=len(evidence.cluster_weight))
    within = size[evidence.cluster] > 1
    if not within.any():
        return None
    first, second = evidence.first[within], evidence.second[within]
    cluster = np.unique(evidence.cluster[within], return_inverse=True)[1]
    clusters = int(cluster.max()) + 1
    heft = np.zeros(clusters)
    heft[cluster] = evidence.cluster_weight[evidence.cluster[within]]
    result = np.rint(2 * evidence.points[within]).astype(np.int64)
    by_lead, by_nu = model.residuals(peak)
    # Divided here by the root of the cluster's weight, so that products come out divided by the weight.
    share = evidence.weight[within] / np.sqrt(heft[cluster])
    lead = by_lead[result, first, second] * share
    slots = [(first, lead), (second, -lead)]
    if model.advantage is not None:
        slots.append((np.full(len(first), model.advantage), lead))
    if model.log_nu is not None:
        slots.append((np.full(len(first), model.log_nu), by_nu[result, first, second] * share))
    parameters = model.parameters
    slopes = np.zeros(clusters * parameters)
    alone = np.zeros((parameters, parameters))
    for index, value in slots:
        slopes += np.bincount(cluster * parameters + index, value, len(slopes))
        for other, second_value in slots:
            alone += np.bincount(
                index * parameters + other, value * second_value, parameters * parameters
            ).reshape(parameters, parameters)
    together = slopes.reshape(clusters, parameters)
    pairs_of = np.zeros(model.results.players)
    for bots in (first, second):
        pairs_of += np.bincount(bots, heft[cluster] / size[evidence.cluster[within]], len(pairs_of))
    return together.T @ together - alone, float(heft.sum()), pairs_of
