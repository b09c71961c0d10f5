"""`make test-service`: a small Debian with a real systemd, booted as one process (user-mode Linux), runs `test_manager.py`.

Needs root, `apt-get install debootstrap user-mode-linux e2fsprogs`, and a mirror of Debian. The machine is thrown away:
nothing of the one it runs on is changed, and what it says of the tests is printed as pytest says it.
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"
PACKAGES = "systemd-sysv,dbus,dbus-user-session,libpam-systemd,python3,procps,util-linux"
PYTHON = "3.11"
"""The Python of that Debian."""
UNIT = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mount -t hostfs none /mnt -o {out}; until [ -e /run/user/1000/bus ]; do sleep 0.5; done; \\
  su ann -c "cd /src; XDG_RUNTIME_DIR=/run/user/1000 ASRD_TEST_MANAGER=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 \\
  python3 -m pytest -c /dev/null --rootdir=. -p no:cacheprovider -v -rs tests/daemon/test_manager.py" > /mnt/said 2>&1; \\
  echo $? > /mnt/code; sync; poweroff -f'
[Install]
WantedBy=graphical.target
"""


def build(root: Path, out: Path) -> None:
    """The machine's files."""
    words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), MIRROR]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", f"--python-version={PYTHON}"]
    subprocess.run([*pip, f"--target={root / 'opt/lib'}", *needs, "pytest"], check=True)
    for part in ("asrd", "tests/daemon"):
        shutil.copytree(ROOT / part, root / "src" / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "daemons.py", "homes.py"):
        shutil.copy(ROOT / "tests" / name, root / "src/tests" / name)
    (root / "usr/lib/python3/dist-packages/src.pth").write_text("/opt/lib\n/src\n")
    (root / "etc/fstab").write_text("/dev/ubda / ext4 defaults 0 1\n")
    (root / "etc/hostname").write_text("asrd-test\n")
    (root / "etc/systemd/system/tests.service").write_text(UNIT.format(out=out))
    (root / "var/lib/systemd/linger").mkdir(parents=True, exist_ok=True)
    (root / "var/lib/systemd/linger/ann").touch()
    for words in (
        ["useradd", "-m", "-u", "1000", "-s", "/bin/bash", "ann"],
        ["systemctl", "enable", "-q", "tests.service"],
    ):
        subprocess.run(["chroot", str(root), *words], check=True)
    subprocess.run(["chroot", str(root), "python3", "-m", "compileall", "-q", "/src", "/opt/lib"], check=False)


def main() -> int:
    """Builds and boots it; gives pytest's exit code."""
    missing = [p for p in ("debootstrap", "linux.uml", "mkfs.ext4") if shutil.which(p) is None]
    if missing:
        sys.stderr.write(f"not here: {', '.join(missing)}; `apt-get install debootstrap user-mode-linux e2fsprogs`\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="asrd-machine-") as folder:
        base = Path(folder)
        out, image = base / "out", base / "image"
        out.mkdir()
        build(base / "root", out)
        subprocess.run(["mkfs.ext4", "-q", "-d", str(base / "root"), str(image), "2G"], check=True)
        boot = ["linux.uml", "mem=1G", f"ubda={image}", "root=/dev/ubda", "rw", "con=null", "console=tty0", "con0=null"]
        subprocess.run(
            boot,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=1800,
            check=False,
        )
        said = out / "said"
        sys.stdout.write(said.read_text() if said.exists() else "the machine did not come to the tests\n")
        code = out / "code"
        return int(code.read_text()) if code.exists() else 1


if __name__ == "__main__":
    raise SystemExit(main())
