from tests.fitted import Fitted
def test_x(fitted: Fitted):
    from astro_rl.augment.fitting import no_bar
    a = fitted.stitcher.augment(300, bar=no_bar)
    print(a, a.info["lineage"]["chains"], a.info["lineage"]["completions"], fitted.stitcher.models.gauge)
    for seed in range(3): print(fitted.stitcher.augment(50, seed=seed, bar=no_bar))
