"""Fixtures: real daemons on real mounts. LATCHFS_BUILD names the CMake build folder; needs root and /dev/fuse."""

import os
import threading

import pytest

import mounting
from locker_client import Locker
from mounting import Stage


def pytest_configure(config):
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.exit("the mount tests need root and /dev/fuse", returncode=77)
    if not mounting.LATCHFS.exists():
        pytest.exit(f"{mounting.LATCHFS} is missing: set LATCHFS_BUILD to the build folder", returncode=2)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for stage in Stage.live:
            for mount in stage.mounts:
                report.sections.append((f"stderr of {mount.name} ({mount.path})", mount.stderr()[-8000:]))


def _kill_everything():
    for stage in list(Stage.live):
        stage.kill_all()


@pytest.fixture(autouse=True)
def watchdog(request):
    """A daemon that never answers would block the test for ever; its death does not."""
    marker = request.node.get_closest_marker("limit")
    timer = threading.Timer(marker.args[0] if marker else 120, _kill_everything)
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()
    timer.join()


@pytest.fixture(autouse=True)
def descriptors():
    """A failed test may leave files open in this process; they would keep the mount busy."""
    yield
    for name in os.listdir("/proc/self/fd"):
        try:
            if "/latchfs-test-" in os.readlink(f"/proc/self/fd/{name}"):
                os.close(int(name))
        except OSError:
            pass


@pytest.fixture
def stage():
    with Stage() as made:
        yield made


@pytest.fixture(scope="module")
def module_stage():
    with Stage() as made:
        yield made


@pytest.fixture(scope="module")
def mount(module_stage):
    """One mount, for all tests of a module; each test works in a directory of its own."""
    return module_stage.mount(module_stage.share())


def _hosts(stage, count):
    share = stage.share()
    return [stage.mount(share, host_id=f"host-{letter}") for letter in "abc"[:count]]


@pytest.fixture(scope="module")
def pair(module_stage):
    """Two mounts of one share that take each other for two hosts."""
    return _hosts(module_stage, 2)


@pytest.fixture(scope="module")
def trio(module_stage):
    return _hosts(module_stage, 3)


@pytest.fixture
def folder(request):
    """A name for the directory of this test."""
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[:100]


@pytest.fixture(params=["mount", "local"])
def place(request, mount, folder):
    """A directory on the mount, and the same again on the local file system: one expectation for both."""
    root = mount.path if request.param == "mount" else mount.share.local
    path = root / folder
    path.mkdir()
    return path


@pytest.fixture
def lockers():
    """Makes processes that lock; those that still live are killed at the end."""
    made = []

    def make():
        made.append(Locker())
        return made[-1]

    yield make
    for locker in made:
        locker.kill()
