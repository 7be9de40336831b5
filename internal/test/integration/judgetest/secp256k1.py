"""ECDSA on secp256k1, deterministic as in RFC 6979. For tests: it takes no care to run in
constant time."""

import hashlib
import hmac

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
     0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)


def double(point):
    x, y = point
    slope = 3 * x * x * pow(2 * y, -1, P)
    third = (slope * slope - 2 * x) % P
    return third, (slope * (x - third) - y) % P


DOUBLES = [G]  # G times 2**i
while len(DOUBLES) < 256:
    DOUBLES.append(double(DOUBLES[-1]))


def times(k):
    """Multiply G by k, from 1 to N-1. The sum is (x/z**2, y/z**3), so that only its end divides.
    It is never plus or minus the point that is added, which is a higher power of 2."""
    x, y, z = 0, 0, 0  # nothing yet
    for i, (px, py) in enumerate(DOUBLES):
        if not k >> i & 1:
            continue
        if z == 0:
            x, y, z = px, py, 1
            continue
        square = z * z % P
        h, r = (px * square - x) % P, (py * square * z - y) % P
        h2 = h * h % P
        h3, v = h * h2 % P, x * h2 % P
        x = (r * r - h3 - 2 * v) % P
        y, z = (r * (v - x) - y * h3) % P, z * h % P
    inverse = pow(z, -1, P)
    return x * inverse**2 % P, y * inverse**3 % P


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
