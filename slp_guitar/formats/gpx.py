"""The container of Guitar Pro 6 files (`.gpx`): a small file system, usually compressed.

Written from the description that its author gave in TuxGuitar's forum in April 2010, and from
files. ``BCFS`` begins a file system of sectors of 4 KiB: one that begins with the number 2 is a
file's entry, with its name, its length and the numbers of the sectors of its content. ``BCFZ``
begins a compressed one: its length, then bits, the highest of each byte first. A 0 is followed by a
length in 2 bits and so many bytes; a 1 by 4 bits that say how many bits a number has, and two
numbers: how far back to begin to copy, and how many bytes. All numbers but that of 4 bits have
their lowest bit or byte first.
"""

import struct

from slp_guitar.bounds import MAX_FILE_BYTES, MAX_UNPACKED_BYTES

FILE_SYSTEM, COMPRESSED = b"BCFS", b"BCFZ"
SECTOR_BYTES = 4096
FILE_ENTRY = 2
NAME, SIZE, SECTORS = slice(0x04, 0x84), slice(0x8C, 0x90), slice(0x94, None)
"""Where the parts of an entry are in its sector."""


def is_gpx(content: bytes) -> bool:
    """Return whether a file begins like one of Guitar Pro 6."""
    return content[:4] in (FILE_SYSTEM, COMPRESSED)


def read_gpx_member(content: bytes, name: str) -> bytes:
    """Return a file from the file system.

    Raises:
        ValueError: if there is none of that name, one of its sectors is missing, it is damaged, or
            has more than 2 MiB compressed or 64 MiB otherwise.
    """
    if content.startswith(COMPRESSED):
        max_bytes = MAX_FILE_BYTES["compressed Guitar Pro 6"]
        if len(content) > max_bytes:
            raise ValueError(f"it has more than {max_bytes >> 10:,} KiB")
        content = _decompress(content[4:])
    if not content.startswith(FILE_SYSTEM):
        raise ValueError(f"it holds no {FILE_SYSTEM.decode()}")
    body = content[len(FILE_SYSTEM) :]
    sectors = [body[at : at + SECTOR_BYTES] for at in range(0, len(body), SECTOR_BYTES)]
    for sector in sectors:
        is_entry = sector.startswith(struct.pack("<I", FILE_ENTRY))
        if is_entry and sector[NAME].partition(b"\0")[0] == name.encode():
            return _join_sectors(sectors, sector, name)
    raise ValueError(f"there is no {name} in it")


def _join_sectors(sectors: list[bytes], entry: bytes, name: str) -> bytes:
    """Return the content of the file of an entry."""
    numbers = entry[SECTORS]
    places = [place for (place,) in struct.iter_unpack("<I", numbers[: len(numbers) & ~3])]
    if 0 in places:
        places = places[: places.index(0)]
    if any(place >= len(sectors) for place in places):
        raise ValueError(f"a sector of {name} is not in it")
    found = b"".join(sectors[place] for place in places)
    size = int.from_bytes(entry[SIZE], "little")
    if size > len(found):
        raise ValueError(f"{name} in it ends too early")
    return found[:size]


def _decompress(content: bytes) -> bytes:
    """Return what was compressed.

    Raises:
        ValueError: if it is too large, or copies from before its beginning.
    """
    size, packed = int.from_bytes(content[:4], "little"), content[4:]
    if size > MAX_UNPACKED_BYTES:
        raise ValueError(f"it unpacks to more than {MAX_UNPACKED_BYTES >> 10:,} KiB")
    bits = f"{int.from_bytes(packed, 'big'):0{8 * len(packed)}b}" if packed else ""
    found, place = bytearray(), 0
    while len(found) < size and place + 7 <= len(bits):  # the shortest that adds a byte
        if bits[place] == "0":
            count = int(bits[place + 1 : place + 3][::-1], 2)
            start, end = place + 3, place + 3 + 8 * count
            found += int(bits[start:end] or "0", 2).to_bytes(count, "big")
        else:
            width = int(bits[place + 1 : place + 5], 2)
            middle, end = place + 5 + width, place + 5 + 2 * width
            back = int(bits[place + 5 : middle][::-1] or "0", 2)
            count = int(bits[middle:end][::-1] or "0", 2)
            if back > len(found):
                raise ValueError("it is damaged")
            start = len(found) - back
            found += found[start : start + min(count, back)]
        place = end
        if count == 0:  # padding, at the end
            break
    return bytes(found)
