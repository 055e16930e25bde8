"""Settings of all tests."""

from hypothesis import HealthCheck, settings

# No test is a timed one: machines are slow at times, and a slow example is no failure.
settings.register_profile("kalarena", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kalarena")
