"""ECDSA on secp256k1, deterministic as in RFC 6979. For tests: it takes no care to run in
constant time."""

import hashlib
import hmac

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
     0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)


def add(a, b):
    """Add two points. None is the point at infinity."""
    if a is None or b is None:
        return a or b
    (x1, y1), (x2, y2) = a, b
    if x1 == x2:
        if (y1 + y2) % P == 0:
            return None
        slope = 3 * x1 * x1 * pow(2 * y1, -1, P)
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, P)
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P


DOUBLES = [G]  # G times 2**i
while len(DOUBLES) < 256:
    DOUBLES.append(add(DOUBLES[-1], DOUBLES[-1]))


def times(k):
    """Multiply G by k."""
    sum = None
    for i, point in enumerate(DOUBLES):
        if k >> i & 1:
            sum = add(sum, point)
    return sum


def nonces(key, digest):
    """Generate the candidates for k of RFC 6979, section 3.2."""
    def mac(*parts):
        return hmac.new(k, b"".join(parts), hashlib.sha256).digest()

    seed = key.to_bytes(32, "big") + (int.from_bytes(digest, "big") % N).to_bytes(32, "big")
    k, v = bytes(32), b"\x01" * 32
    for mark in (b"\x00", b"\x01"):
        k = mac(v, mark, seed)
        v = mac(v)
    while True:
        v = mac(v)
        if 0 < int.from_bytes(v, "big") < N:
            yield int.from_bytes(v, "big")
        k = mac(v, b"\x00")
        v = mac(v)


def sign(key, digest, high=False):
    """Return r, s and v, 65 bytes. s is low unless high is set, and v is 27 or 28."""
    z = int.from_bytes(digest, "big")
    for k in nonces(key, digest):
        x, y = times(k)
        r = x % N
        s = pow(k, -1, N) * (z + r * key) % N
        if r == 0 or s == 0 or x >= N:
            continue
        odd = y & 1
        if (s > N // 2) != high:
            s, odd = N - s, odd ^ 1
        return r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([27 + odd])
