"""Whether the default takes the rate of a study, and what it serves where it does not."""

from collections.abc import Sequence
from dataclasses import replace

from tuner.deploy.deployment import Deployment
from tuner.errors import TargetError
from tuner.measure.window import Load, run_window
from tuner.records import Blame, Check, Window
from tuner.study import Study
from tuner.study.objective import FAILURE_RATE, UNLIKE_DEFAULT

LEAST_SHARE = 0.95
"""Of the requests that were due, which a server that takes the rate answers correctly in the window. Some are
under way when it ends."""
SURE_SHARE = 0.7
"""Of what the default can serve: a rate that leaves it room. Near its limit, queues grow without bounds."""
WINDOW_S = 1.0


def refuse_rate(
    settings: Study, load: Load, windows: Sequence[Window], deployment: Deployment | None = None
) -> None:
    """Raise TargetError where the default answers too few of the requests that are due.

    Growing queues would be compared. A study that looks for a configuration unlike the default may do so.

    Args:
        settings: the study.
        load: its load.
        windows: of the default.
        deployment: of the default, to find out what it serves without a rate.
    """
    served_rps = max((each.goodput_rps for each in windows if _tells(each)), default=None)
    seeks = any(each.default_may_fail for each in settings.constraints)
    if load.rate_rps is None or served_rps is None or seeks or served_rps >= LEAST_SHARE * load.rate_rps:
        return
    if deployment is not None:
        served_rps = run_window(deployment, replace(load, rate_rps=None), WINDOW_S).goodput_rps
    raise TargetError(
        f"{settings.path}: load.rate: the study asks for {load.rate_rps:,.8g} requests/s, and the default "
        f"serves only about {served_rps:,.0f}. Write `rate: {SURE_SHARE * served_rps:.0f}` or less, or "
        f"search for a configuration that takes this rate: `constraints: [{FAILURE_RATE} <= 0.001 "
        f"{UNLIKE_DEFAULT}]`."
    )


def _tells(window: Window) -> bool:
    """Return whether nothing but the generator, which a full server keeps busy, speaks against a window."""
    against = {verdict.check for verdict in window.verdicts if verdict.blame is Blame.ENVIRONMENT}
    return against <= {Check.SCHEDULE}
