"""Who listens on a port: for the sentence that says a port is in use. Best effort, Linux only."""

from __future__ import annotations

from pathlib import Path

_LISTENING = "0A"


def port_owner(port: int) -> str | None:
    """The name and process id of who listens on a local TCP port, if it can be told."""
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").glob("[0-9]*"):
        if _holds(process, wanted):
            return f"{_name(process)} (pid {process.name})"
    return None


def _listening_inodes(port: int) -> set[str]:
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in (line.split() for line in lines):
            if fields[3] == _LISTENING and int(fields[1].rsplit(":", 1)[1], 16) == port:
                found.add(fields[9])
    return found


def _holds(process: Path, sockets: set[str]) -> bool:
    try:
        return any(str(handle.readlink()) in sockets for handle in (process / "fd").iterdir())
    except OSError:
        return False


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "a process"
