"""Archives as strangers make them: those an attacker's review brought, and generated ones."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zipfile
import zlib

OVERVIEW = b"---\nname: s\ndescription: d\n---\n# s\n"
_KINDS = b"0\0123456789xgLKSDMNV"
_NAMES = (
    *(b"SKILL.md", b"a/b.md", b"../up", b"/etc/up", b"x" * 100, b"\x1b[31m", b"\xff\xfe", b".hidden", b"con"),
    *(b"a\\b", b"a:b", b"skill.md", b"", b"./x"),
)


def tarred(*members: tuple[str, bytes, bytes, str]) -> bytes:
    """A gzipped tar archive of names, types, contents and link targets."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, content, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size, info.mode = kind, target, len(content), 0o755
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(out.getvalue())


def zipped(*members: tuple[str, bytes, int], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive of names, contents and modes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = mode << 16, method
            archive.writestr(info, content)
    return out.getvalue()


def header(name: bytes, kind: bytes, size: bytes, sparse_size: int | None = None) -> bytes:
    """One block of a tar archive, with its checksum right; ``size`` is the raw field."""
    block = bytearray(512)
    block[: min(100, len(name))] = name[:100]
    block[100:108], block[108:116], block[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
    block[124:136], block[136:148], block[148:156] = size.ljust(12, b"\0")[:12], b"00000000000\0", b" " * 8
    block[156:157], block[257:265] = kind, b"ustar  \0" if sparse_size is not None else b"ustar\00000"
    if sparse_size is not None:
        block[483:495] = binary(sparse_size)
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def octal(number: int) -> bytes:
    return b"%011o\0" % number


def binary(number: int) -> bytes:
    """A number of a header in base 256, which can be negative."""
    return bytes([0o377 if number < 0 else 0o200]) + (number % (1 << 88)).to_bytes(11, "big")


def padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 512)


def plain(name: bytes, content: bytes) -> bytes:
    return header(name, b"0", octal(len(content))) + padded(content)


def pax_record(key: bytes, value: bytes) -> bytes:
    length = len(key) + len(value) + 3
    while len(record := b"%d %s=%s\n" % (length, key, value)) != length:
        length = len(record)
    return record


def pax(*records: tuple[bytes, bytes], kind: bytes = b"x") -> bytes:
    body = b"".join(pax_record(*record) for record in records)
    return header(b"x", kind, octal(len(body))) + padded(body)


def _sparse(gib: int) -> bytes:
    bomb = plain(b"SKILL.md", OVERVIEW)
    bomb += header(b"neg.bin", b"S", octal(0), -gib << 30) + header(b"pos.bin", b"S", octal(0), gib << 30)
    return gzip.compress(bomb + bytes(1024))


def _digits(count: int) -> bytes:
    slow = pax((b"GNU.sparse.size", b"5"), (b"comment", b"1" * count)) + plain(b"SKILL.md", OVERVIEW)
    return gzip.compress(slow + bytes(1024))


def _zeros(mib: int) -> bytes:
    squeeze = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join(squeeze.compress(bytes(1 << 20)) for _ in range(mib)) + squeeze.flush()


def _many_entries(count: int) -> bytes:
    """A zip archive whose directory names one file many times."""
    whole = zipped(("SKILL.md", OVERVIEW, 0o100644))
    start, end = whole.rindex(b"PK\1\2"), whole.rindex(b"PK\5\6")
    body = whole[:start] + whole[start:end] * count
    size = (end - start) * count
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(body), 1)
    return (
        body + end64 + locator + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65535, 65535, *[2**32 - 1] * 2, 0)
    )


def _broken_lzma(at: int, harm: bytes) -> bytes:
    files = ("SKILL.md", OVERVIEW, 0o100644), ("x.bin", b"abc" * 3000, 0o100644)
    whole = bytearray(zipped(*files, method=zipfile.ZIP_LZMA))
    start = whole.index(b"x.bin") + 5 + at
    whole[start : start + len(harm)] = harm
    return bytes(whole)


def _patched(whole: bytes, *changes: tuple[bytes, int, bytes]) -> bytes:
    """An archive with other bytes at a distance from the last place of a signature."""
    out = bytearray(whole)
    for signature, distance, new in changes:
        at = out.rindex(signature) + distance
        out[at : at + len(new)] = new
    return bytes(out)


def of_the_review() -> dict[str, bytes]:
    """Every archive of the review, by a name that says what is wrong with it."""
    regular = tarfile.REGTYPE
    skill, file = ("SKILL.md", regular, OVERVIEW, ""), ("SKILL.md", OVERVIEW, 0o100644)
    return {
        "tar-ok": tarred(skill),
        "tar-absolute": tarred(skill, ("/etc/evil", regular, b"x", "")),
        "tar-climbing": tarred(skill, ("../../evil", regular, b"x", "")),
        "tar-symlink": tarred(skill, ("l", tarfile.SYMTYPE, b"", "/etc/passwd")),
        "tar-hardlink": tarred(skill, ("l", tarfile.LNKTYPE, b"", "SKILL.md")),
        "tar-device": tarred(skill, ("d", tarfile.CHRTYPE, b"", "")),
        "tar-fifo": tarred(skill, ("f", tarfile.FIFOTYPE, b"", "")),
        "tar-twice": tarred(skill, skill),
        "tar-case": tarred(skill, ("skill.md", regular, b"x", "")),
        "tar-dots": tarred(("./SKILL.md", regular, OVERVIEW, ""), ("././x", regular, b"x", "")),
        "tar-600-files": tarred(skill, *((f"f{n}", regular, b"x", "") for n in range(600))),
        "tar-40000-folders": tarred(skill, *((f"d{n}", tarfile.DIRTYPE, b"", "") for n in range(40000))),
        "tar-zeros": _zeros(256),
        "tar-escape": tarred(skill, ("\x1b[31m", regular, b"x", "")),
        "tar-long-name": tarred(skill, ("p/" * 7000 + "x", regular, b"x", "")),
        "tar-cut": tarred(skill)[:-20],
        "tar-bz2": b"BZh91AY&SY",
        "tar-sparse": _sparse(3),
        "tar-sparse-30": _sparse(30),
        "tar-digits": _digits(60_000),
        "tar-more-digits": _digits(1_000_000),
        "not-an-archive": b"hello",
        "empty": b"",
        "zip-ok": zipped(file),
        "zip-absolute": zipped(file, ("/etc/evil", b"x", 0o100644)),
        "zip-climbing": zipped(file, ("../evil", b"x", 0)),
        "zip-symlink": zipped(file, ("l", b"/etc/passwd", 0o120777)),
        "zip-twice": _patched(
            zipped(file, ("SKILL.mx", b"x", 0)), (b"PK\1\2", 53, b"d"), (b"PK\3\4", 37, b"d")
        ),
        "zip-backslash": zipped(file, ("..\\evil", b"x", 0)),
        "zip-bomb": zipped(file, ("b", bytes(100 << 20), 0)),
        "zip-300000-entries": _many_entries(300_000),
        "zip-lzma-broken": _broken_lzma(4, b"\xff" * 5),
        "zip-lzma-broken-too": _broken_lzma(12, b"\xff" * 9),
        "zip-bz2": zipped(file, ("x", b"a" * 100_000, 0), method=zipfile.ZIP_BZIP2),
        "zip-encrypted": _patched(zipped(file), (b"PK\3\4", 6, b"\1"), (b"PK\1\2", 8, b"\1")),
        "zip-size-lies": _patched(
            zipped(file, ("x", b"a" * 5000, 0)), (b"PK\1\2", 24, struct.pack("<L", 10))
        ),
    }


def generated(seed: int) -> bytes:
    """An archive with something wrong in it, perhaps; the same for the same seed."""
    chance = random.Random(seed)
    return _odd_tar(chance) if seed % 2 else _odd_zip(chance)


def _odd_tar(chance: random.Random) -> bytes:
    data = plain(b"SKILL.md", OVERVIEW) if chance.random() < 0.8 else b""
    for _ in range(chance.randint(0, 6)):
        body = chance.randbytes(chance.choice((0, 1, 511, 512, 5000)))
        size = chance.choice(
            (octal(len(body)), octal(chance.randint(0, 1 << 33)), binary(chance.randint(-1 << 40, 1 << 40)))
        )
        kind = bytes([chance.choice(_KINDS)])
        if chance.random() < 0.4:
            keys = (
                b"path",
                b"size",
                b"GNU.sparse.size",
                b"GNU.sparse.map",
                b"GNU.sparse.major",
                b"hdrcharset",
            )
            values = (
                b"1" * chance.choice((1, 2000, 20_000, 100_000)),
                b"-1",
                b"../x",
                b"BINARY",
                b"0,9" * 500,
            )
            records = [(chance.choice(keys), chance.choice(values)) for _ in range(chance.randint(1, 4))]
            data += pax(*records, kind=chance.choice((b"x", b"g")))
        sparse = chance.choice((None, None, chance.randint(-1 << 40, 1 << 40)))
        data += header(chance.choice(_NAMES), kind, size, sparse) + padded(body)
    data = _harmed(data + bytes(1024), chance) if chance.random() < 0.3 else data + bytes(1024)
    packed = gzip.compress(data, 1)
    return _harmed(packed, chance) if chance.random() < 0.2 else packed


def _odd_zip(chance: random.Random) -> bytes:
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    members = [("SKILL.md", OVERVIEW, 0o100644)]
    for number in range(chance.randint(0, 6)):
        content = chance.choice((b"", b"x", chance.randbytes(3000), bytes(1 << chance.randint(10, 23))))
        name = chance.choice(_NAMES).decode("latin-1") or f"f{number}"
        members.append((f"{number}{name}", content, chance.choice((0, 0o100755, 0o120777, 0o20644))))
    whole = zipped(*members, method=chance.choice(methods))
    if chance.random() < 0.3:
        field, width = chance.choice(((8, 2), (10, 2), (12, 4), (16, 4), (20, 2)))
        whole = _patched(whole, (b"PK\5\6", field, chance.randbytes(width)))
    return _harmed(whole, chance) if chance.random() < 0.5 else whole


def _harmed(whole: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, most of them near signatures and headers; or the end cut off."""
    if chance.random() < 0.2:
        return whole[: chance.randrange(len(whole))]
    out = bytearray(whole)
    for _ in range(chance.randint(1, 8)):
        near = out.rfind(b"PK\1\2") if chance.random() < 0.5 else chance.randrange(len(out))
        at = min(len(out) - 1, max(0, near) + chance.randrange(64))
        out[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    return bytes(out)
