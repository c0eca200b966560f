"""Every figure of the paper's tables, as printed, with the table that it stands in.

Tables 1 and 2 lie beside the tasks they belong to (`tasks.published`); here they get the form of all others. What the
paper computes from them is in `averages`; where its own arithmetic does not hold is in `DISAGREEMENTS: tuple[str, ...] = (
    "The regime figures leave tasks out: IQL below 20 is humanoidmaze-large and antsoccer alone (not antmaze-giant, "
    "0 → 0, nor cube-double, 2.4 → 2.5); IQL from 20 to 80 has no humanoidmaze-medium (29.7 → 31.4); FQL below 20 has "
    "no humanoidmaze-large (2.7 → 3.5). Each of these has a small gain. D4RL counts as one task among the others.",
    "“+32.7 %” is the mean of the eight OGBench tasks × two learners, “+26.2 %” IQL's mean of three group means, in "
    "which the six D4RL tasks weigh as much as five mazes: two averages of one table.",
    "The horizon is 180 in its own table and 160 in the ablation, with the same error of 0.657.",
    "Selecting 10 chains at the default takes 4.5 s in one half of the ablation and 6.5 s in the other.",
    "A mean |Δθ| of 3.147 is above π, the largest angle there is.",
    "Curvature is “higher is better” in the table, and grows with the sharpness of turns by its formula.",
    "A mean Q of −111.17 lies below −100, the least that γ = 0.99 and rewards of −1 allow.",
    "“+9.71 Q_mean compared to baselines” is 9.70 by the figures beside it: the mean of 16.59 − 3.82 and 7.06 − 0.43.",
    "SynthER’s FQL gain from 20 to 80 is +2.05 by table 1 and +2.07 in the text.",
)
"""Found by computing what the paper says from what it prints; `tests/bench/test_paper.py` does it again."""
