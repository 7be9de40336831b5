// ECDSA on secp256k1, deterministic as in RFC 6979. For tests: it takes no care to run in
// constant time.

import { createHmac } from 'node:crypto'

const P = 2n ** 256n - 2n ** 32n - 977n
const N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141n
const G = [0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798n,
  0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8n]

const mod = (a, m) => { const r = a % m; return r < 0n ? r + m : r }

// inverse returns 1/a modulo m.
function inverse(a, m) {
  let [low, high, x, y] = [mod(a, m), m, 1n, 0n]
  while (low > 1n) {
    const q = high / low;
    [low, high, x, y] = [high - q * low, low, y - q * x, x]
  }
  return mod(x, m)
}

function double([x, y]) {
  const slope = 3n * x * x * inverse(2n * y, P)
  const third = mod(slope * slope - 2n * x, P)
  return [third, mod(slope * (x - third) - y, P)]
}

const doubles = [G] // G times 2**i
while (doubles.length < 256) doubles.push(double(doubles.at(-1)))

// times multiplies G by k, from 1 to N-1. The sum is (x/z**2, y/z**3), so that only its end divides. It is
// never plus or minus the point that is added, which is a higher power of 2.
function times(k) {
  let [x, y, z] = [0n, 0n, 0n] // nothing yet
  for (let i = 0; k; i++, k >>= 1n) {
    if (!(k & 1n)) continue
    const [px, py] = doubles[i]
    if (!z) {
      [x, y, z] = [px, py, 1n]
      continue
    }
    const square = z * z % P
    const [h, r] = [mod(px * square - x, P), mod(py * square % P * z - y, P)]
    const h2 = h * h % P
    const [h3, v] = [h * h2 % P, x * h2 % P]
    x = mod(r * r - h3 - 2n * v, P)
    y = mod(r * (v - x) - y * h3, P)
    z = z * h % P
  }
  const end = inverse(z, P)
  return [mod(x * end * end, P), mod(y * end * end * end, P)]
}

const bytes = (n) => Buffer.from(n.toString(16).padStart(64, '0'), 'hex')
const integer = (b) => BigInt('0x' + b.toString('hex'))

// nonces generates the candidates for k of RFC 6979, section 3.2.
function * nonces(key, digest) {
  const mac = (k, ...parts) => createHmac('sha256', k).update(Buffer.concat(parts)).digest()
  const seed = Buffer.concat([bytes(key), bytes(integer(digest) % N)])
  let [k, v] = [Buffer.alloc(32), Buffer.alloc(32, 1)]
  for (const mark of [0, 1]) {
    k = mac(k, v, Buffer.from([mark]), seed)
    v = mac(k, v)
  }
  for (;;) {
    v = mac(k, v)
    if (integer(v) > 0n && integer(v) < N) yield integer(v)
    k = mac(k, v, Buffer.from([0]))
    v = mac(k, v)
  }
}

// sign returns r, s and v, 65 bytes. s is low, and v is 27 or 28.
export function sign(key, digest) {
  for (const k of nonces(key, digest)) {
    const [x, y] = times(k)
    let s = mod(inverse(k, N) * (integer(digest) + x * key), N)
    if (s === 0n || x >= N) continue
    let odd = Number(y & 1n)
    if (s > N / 2n) [s, odd] = [N - s, odd ^ 1]
    return Buffer.concat([bytes(x), bytes(s), Buffer.from([27 + odd])])
  }
}
