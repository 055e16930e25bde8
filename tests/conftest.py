"""Settings of all tests."""

import os
import tempfile

from hypothesis import HealthCheck, settings

from sample_bots.strong import kernels

# No test is a timed one: machines are slow at times, and a slow example is no failure.
settings.register_profile("kalarena", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kalarena")

# numba looks at the source of a kernel alone, not at constants that the kernel has from other files: machine
# code is kept apart for each state of all the sources.  numba reads this when it is imported.
if kernels.can_compile():
    name = f"kalarena-tests-{os.getuid()}-{kernels.directory().name}"
    os.environ.setdefault(kernels.CACHE_VARIABLE, os.path.join(tempfile.gettempdir(), name))  # noqa: PTH118
