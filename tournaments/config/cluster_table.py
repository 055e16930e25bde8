"""``[cluster]`` table of a tournament file and of a server's file.

It configures a cluster's workers, and the comparison of hosts.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from tournaments.config.host_speed import REFERENCE_SPEED

MAX_WORKERS = 100_000
"""Documented bound."""
WALLTIME = re.compile(r"\d{1,4}:[0-5]\d:[0-5]\d")
MEMORY = re.compile(r"[1-9]\d* ?[MG]i?B")


def _share(value: Any) -> Any:
    """Return ``"10%"`` as a number, 0.1."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,2}(\.\d+)?%", value) and float(value[:-1]):
        return float(value[:-1]) / 100
    raise ValueError(f'must be a percentage like "10%", above 0 and below 100, not {value!r}')


class ClusterTable(BaseModel):
    """Cluster options of a tournament."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    queue: str | None = Field(None, min_length=1)
    """Slurm's partition; None is its default one."""
    cores: int = Field(1, ge=1, le=1024)
    """Cores of each Slurm job, which plays as many games at a time."""
    memory: str = "2 GiB"
    """Memory of each Slurm job, for all of its games together."""
    walltime: str = "01:00:00"
    """Hours, minutes and seconds after which Slurm ends a job; another one replaces it."""
    minimum: int = Field(1, ge=1, le=MAX_WORKERS)
    """Number of slots at which games begin; on Slurm it is always kept."""
    maximum: int = Field(MAX_WORKERS, ge=1, le=MAX_WORKERS)
    """Maximum number of games at a time on Slurm."""
    host: str | None = Field(None, min_length=1)
    """Address of this machine at which its scheduler listens; None is every one that it has."""
    port: int = Field(0, ge=0, le=65535)
    """Port of the scheduler; 0 is any that is free."""
    same_speed: Annotated[float | None, BeforeValidator(_share)] = None
    """Maximum difference between the speeds of hosts, as a share; None is any."""
    scale_time: bool = False
    """True if time limits are longer on slower hosts."""
    reference_speed: float = Field(REFERENCE_SPEED, gt=0, allow_inf_nan=False)
    """Speed of the core for which the time limits are specified, in positions per second."""

    @field_validator("memory")
    @classmethod
    def _amount(cls, memory: str) -> str:
        if not MEMORY.fullmatch(memory):
            raise ValueError(f'must be an amount like "4 GiB" or "500 MB", not {memory!r}')
        return memory

    @field_validator("walltime")
    @classmethod
    def _duration(cls, walltime: str) -> str:
        if not WALLTIME.fullmatch(walltime):
            raise ValueError(f'must be hours, minutes and seconds like "04:00:00", not {walltime!r}')
        return walltime

    @property
    def walltime_s(self) -> int:
        """The walltime in seconds."""
        hours, minutes, seconds = map(int, self.walltime.split(":"))
        return (hours * 60 + minutes) * 60 + seconds

    @property
    def scaled_from(self) -> float | None:
        """Speed from which time limits are scaled; None if they are the same on every host."""
        return self.reference_speed if self.scale_time else None

    @model_validator(mode="after")
    def _consistent(self) -> "ClusterTable":
        if self.minimum > self.maximum:
            raise ValueError(f"minimum = {self.minimum} is more than maximum = {self.maximum}")
        if self.scale_time and self.same_speed is not None:
            raise ValueError("takes either same_speed or scale_time: with scaled limits any host will do")
        if not self.scale_time and "reference_speed" in self.model_fields_set:
            raise ValueError("reference_speed is what scale_time = true scales from: give that, too")
        return self


class ServerClusterTable(ClusterTable):
    """Cluster options of a server, for all of its tournaments."""

    engine: Literal["dask", "slurm"]
    """Source of workers on other machines: people start them (dask), or Slurm does."""
    folder: str | None = Field(None, min_length=1)
    """Folder of credentials and logs, visible to all of these machines; None is in the data directory."""

    @model_validator(mode="after")
    def _is_the_same_for_all(self) -> "ServerClusterTable":
        if self.scale_time:
            raise ValueError(
                "scale_time is for the command line's tournaments: on the server's pages a time limit is the "
                "same for all; take same_speed"
            )
        return self
