"""A disk that loses what was not synced when the power goes, at any operation one likes."""

import random
from pathlib import Path

from asrd.store.disk import RealDisk


class PowerCut(BaseException):
    """The power is gone: nothing after this happens."""


class FragileDisk(RealDisk):
    """A RealDisk that remembers what is durable. `fuse`: how many operations go well before the power cut."""

    def __init__(self, fuse: int | None = None) -> None:
        super().__init__()
        self.fuse = fuse
        self.durable: dict[Path, int] = {}
        self.operations = 0

    def _burn(self) -> None:
        self.operations += 1
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                raise PowerCut

    def append(self, path: Path, data: bytes) -> None:
        if path not in self.durable:
            self.durable[path] = self.size(path) or 0
        try:
            self._burn()
        except PowerCut:
            super().append(path, data[: len(data) // 2])  # the cut falls into the write
            raise
        super().append(path, data)

    def sync(self, *paths: Path) -> None:
        for path in paths:
            self._burn()
            super().sync(path)
            self.durable[path] = self.size(path) or 0

    def truncate(self, path: Path, size: int) -> None:
        self._burn()
        super().truncate(path, size)
        self.durable[path] = min(size, self.durable.get(path, size))

    def lose(self, chance: random.Random) -> None:
        """What the power cut leaves: all that was synced, and of the rest some prefix."""
        for path, durable in self.durable.items():
            size = self.size(path)
            if size is None or size <= durable:
                continue
            if not durable and chance.random() < 0.3:
                path.unlink()  # the name of a new file was not durable either
                continue
            with open(path, "r+b") as file:
                file.truncate(chance.randint(durable, size))
        self.close()
