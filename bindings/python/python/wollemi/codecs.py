"""Codecs: keys and values of other types than bytes.

A codec has `encode(object) -> bytes` and `decode(bytes) -> object`; any object with these two methods is one. Ranges of
keys need a codec that preserves their order, so that a smaller object has smaller bytes, and says so by the attribute
`ordered = True`. Where the bytes of one key may begin with those of another that is no prefix of it, the codec needs
`begin_with(bytes) -> (least, behind)`, which returns the range of the keys that begin with the key of these bytes.
"""

import json as _json
import struct as _struct
from typing import Any


class Bytes:
    """Bytes, unchanged: the default."""

    ordered = True

    def encode(self, value: Any) -> bytes:
        return value

    def decode(self, data: bytes) -> bytes:
        return data


class Str:
    """Text in UTF-8, ordered by code points."""

    ordered = True

    def encode(self, value: str) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"str expected, not {type(value).__name__}")
        return value.encode()

    def decode(self, data: bytes) -> str:
        return data.decode()


class Int:
    """Integers from -2**63 to 2**63 - 1 in eight bytes, in numeric order. Values of eight bytes are updated in
    place."""

    ordered = True

    def encode(self, value: int) -> bytes:
        if not isinstance(value, int):
            raise TypeError(f"int expected, not {type(value).__name__}")
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{value}: not an integer of 64 bits")
        return (value + 2**63).to_bytes(8, "big")

    def decode(self, data: bytes) -> int:
        if len(data) != 8:
            raise ValueError(f"{len(data)} bytes are not an integer of 64 bits")
        return int.from_bytes(data, "big") - 2**63


class Tuple:
    """Tuples of None, bool, int (64 bits), float, str, bytes and tuples, ordered element by element, a prefix first.

    Elements of different types are ordered by type: None, bytes, str, tuples, int, float, False, True.
    `items(prefix=...)` with a shorter tuple finds all tuples that begin with its elements.
    """

    ordered = True

    _NONE, _BYTES, _STR, _TUPLE, _INT, _FLOAT, _FALSE, _TRUE = range(1, 9)

    def encode(self, value: tuple) -> bytes:
        if not isinstance(value, tuple):
            raise TypeError(f"tuple expected, not {type(value).__name__}")
        return b"".join(map(self._element, value))

    def _element(self, value: Any) -> bytes:
        if value is None:
            return bytes([self._NONE])
        if isinstance(value, bool):
            return bytes([self._TRUE if value else self._FALSE])
        if isinstance(value, (bytes, bytearray)):
            return bytes([self._BYTES]) + bytes(value).replace(b"\0", b"\0\xff") + b"\0"
        if isinstance(value, str):
            return bytes([self._STR]) + value.encode().replace(b"\0", b"\0\xff") + b"\0"
        if isinstance(value, tuple):
            return bytes([self._TUPLE]) + self.encode(value) + b"\0"
        if isinstance(value, int):
            return bytes([self._INT]) + Int().encode(value)
        if isinstance(value, float):
            (bits,) = _struct.unpack(">Q", _struct.pack(">d", value))
            # Floats are ordered by their bits, once those of negative ones are flipped.
            bits ^= 2**64 - 1 if bits >> 63 else 2**63
            return bytes([self._FLOAT]) + bits.to_bytes(8, "big")
        raise TypeError(f"{type(value).__name__} cannot be part of a key")

    def begin_with(self, first: bytes) -> tuple[bytes, bytes]:
        """Returns the range of tuples that begin with these elements: the least key, and a bound above all of them. (A
        zero within a string is followed by 0xff, where another element would begin with its type.)"""
        return first, first + b"\xff"

    def decode(self, data: bytes) -> tuple:
        elements, at = self._elements(data, 0, False)
        if at != len(data):
            raise ValueError("not the bytes of a tuple")
        return elements

    def _elements(self, data: bytes, at: int, nested: bool):
        elements = []
        while at < len(data):
            kind = data[at]
            at += 1
            if kind == 0 and nested:
                return tuple(elements), at
            if kind == self._NONE:
                elements.append(None)
            elif kind in (self._FALSE, self._TRUE):
                elements.append(kind == self._TRUE)
            elif kind in (self._BYTES, self._STR):
                value, at = self._text(data, at)
                elements.append(value if kind == self._BYTES else value.decode())
            elif kind == self._TUPLE:
                value, at = self._elements(data, at, True)
                elements.append(value)
            elif kind == self._INT:
                elements.append(Int().decode(data[at : at + 8]))
                at += 8
            elif kind == self._FLOAT:
                bits = Int().decode(data[at : at + 8]) + 2**63
                bits ^= 2**63 if bits >> 63 else 2**64 - 1
                elements.append(_struct.unpack(">d", bits.to_bytes(8, "big"))[0])
                at += 8
            else:
                raise ValueError("not the bytes of a tuple")
        if nested:
            raise ValueError("truncated bytes of a tuple")
        return tuple(elements), at

    @staticmethod
    def _text(data: bytes, at: int):
        end = at
        while True:
            end = data.find(b"\0", end)
            if end < 0:
                raise ValueError("truncated bytes of a tuple")
            if data[end + 1 : end + 2] != b"\xff":
                return data[at:end].replace(b"\0\xff", b"\0"), end + 1
            end += 2


class Json:
    """Any JSON value. Only for values: the bytes have no useful order."""

    ordered = False

    def encode(self, value: Any) -> bytes:
        return _json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    def decode(self, data: bytes) -> Any:
        return _json.loads(data)


bytes_codec = Bytes()
str_codec = Str()
int_codec = Int()
tuple_codec = Tuple()
json_codec = Json()

BY_NAME = {
    "bytes": bytes_codec,
    "str": str_codec,
    "int": int_codec,
    "tuple": tuple_codec,
    "json": json_codec,
}


def find(codec: Any) -> Any:
    """Returns the codec of this name, or the codec itself; None: bytes."""
    if codec is None:
        return bytes_codec
    if isinstance(codec, str):
        if codec not in BY_NAME:
            raise ValueError(f"unknown codec '{codec}': expected one of {', '.join(BY_NAME)}")
        return BY_NAME[codec]
    if not (hasattr(codec, "encode") and hasattr(codec, "decode")):
        raise TypeError("a codec has encode() and decode()")
    return codec
