"""Tries what a run does before its first trial, and changes nothing."""

from tuner.campaign.prepare import Setup
from tuner.campaign.warm_start import read_earlier
from tuner.commands.session import as_begun, has_verdict, open_begun, settle_plan, settle_preset
from tuner.errors import UsageError
from tuner.optimize.catalogue import make_optimizer, need_package_of
from tuner.space.problems import in_file
from tuner.study import Study
from tuner.study.folder import require_own
from tuner.study.open_storage import is_there
from tuner.study.storage import Storage


def rehearse(settings: Study, setup: Setup, *, trusts: bool) -> tuple[str, ...]:
    """Try what a run needs besides its servers: storage, earlier studies, optimizer.

    Args:
        settings: the study.
        setup: as prepared.
        trusts: whether code is run that the study's author chose.

    Returns:
        A sentence for everything that was not tried.

    Raises:
        UsageError: the run would be refused: another study's storage, another preset or too little time, an
            earlier study that cannot be read, an optimizer that is not there.
        TargetError: the storage cannot be opened.
    """
    unseen: list[str] = []
    begun = _open(settings)
    setup = as_begun(setup, begun)
    preset = settle_preset(settings, begun)
    settle_plan(settings, begun, preset=preset)
    if begun is not None:
        begun.refuse_another(setup.fingerprint, definition=settings.definition(setup.space))
    if not has_verdict(begun):
        _refuse_endless(settings)
        read_earlier(settings, setup.space)
        with in_file(settings.path):
            _make_optimizer(settings, setup, unseen, trusts=trusts)
    return tuple(unseen)


def _open(settings: Study) -> Storage | None:
    require_own(settings.folder)
    return open_begun(settings) if is_there(settings.storage_url) else None


def _refuse_endless(settings: Study) -> None:
    for path in settings.warm_start:
        if path.exists() and not path.is_file():  # a pipe or a device would be read without end
            raise UsageError(
                f"{settings.path}: warm_start: {path}: this is no regular file. Name a study file."
            )


def _make_optimizer(settings: Study, setup: Setup, unseen: list[str], *, trusts: bool) -> None:
    if ":" in settings.optimizer and not trusts:
        need_package_of(settings.optimizer)
        unseen.append(f"optimizer {settings.optimizer}: its code runs only with --trust")
        return
    make_optimizer(settings.optimizer, setup.space.encode(setup.space.default()))
