"""``[cluster]`` of a tournament file, and of a server's: where a cluster's workers come from, and how hosts
are compared.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from tournaments.cluster.calibration import REFERENCE_SPEED

MAX_WORKERS = 100_000
"""Documented bound."""
WALLTIME = re.compile(r"\d{1,4}:[0-5]\d:[0-5]\d")
MEMORY = re.compile(r"[1-9]\d* ?[MG]i?B")


def _share(value: Any) -> Any:
    """``"10%"`` as a number, 0.1."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,2}(\.\d+)?%", value) and float(value[:-1]):
        return float(value[:-1]) / 100
    raise ValueError(f'must be a percentage like "10%", above 0 and below 100, not {value!r}')


class ClusterTable(BaseModel):
    """How a tournament uses a cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    queue: str | None = Field(None, min_length=1)
    """Slurm's partition; None is its default one."""
    cores: int = Field(1, ge=1, le=1024)
    """Of each Slurm job: as many games at a time are played in it."""
    memory: str = "2 GiB"
    """Of each Slurm job, for all of its games together."""
    walltime: str = "01:00:00"
    """Hours, minutes and seconds after which Slurm ends a job; another one takes its place."""
    minimum: int = Field(1, ge=1, le=MAX_WORKERS)
    """Games are begun when so many can be played at a time; on Slurm it never becomes fewer."""
    maximum: int = Field(MAX_WORKERS, ge=1, le=MAX_WORKERS)
    """On Slurm no more are played at a time."""
    host: str | None = Field(None, min_length=1)
    """The address of this machine at which its scheduler listens; None is every one that it has."""
    port: int = Field(0, ge=0, le=65535)
    """The scheduler's; 0 is any that is free."""
    same_speed: Annotated[float | None, BeforeValidator(_share)] = None
    """Games are played only on hosts whose speeds differ by no more than this share."""
    scale_time: bool = False
    """Whether time limits are longer on slower hosts."""
    reference_speed: float = Field(REFERENCE_SPEED, gt=0, allow_inf_nan=False)
    """Of the core that the time limits are meant for, in positions per second."""

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
        """The speed that time limits are scaled from; None if they are the same on every host."""
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
    """How a server uses a cluster for all of its tournaments."""

    engine: Literal["dask", "slurm"]
    """Whether people start workers on other machines, or Slurm does."""
    folder: str | None = Field(None, min_length=1)
    """Where credentials and logs are kept, for all of these machines to see; None: in the data directory."""

    @model_validator(mode="after")
    def _is_the_same_for_all(self) -> "ServerClusterTable":
        if self.scale_time:
            raise ValueError(
                "scale_time is for the command line's tournaments: on the server's pages a time limit is the "
                "same for all; take same_speed"
            )
        return self
