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

// add adds two points. null is the point at infinity.
function add(a, b) {
  if (!a || !b) return a ?? b
  const [[x1, y1], [x2, y2]] = [a, b]
  if (x1 === x2 && mod(y1 + y2, P) === 0n) return null
  const slope = x1 === x2 ? 3n * x1 * x1 * inverse(2n * y1, P) : (y2 - y1) * inverse(x2 - x1, P)
  const x = mod(slope * slope - x1 - x2, P)
  return [x, mod(slope * (x1 - x) - y1, P)]
}

const doubles = [G] // G times 2**i
while (doubles.length < 256) doubles.push(add(doubles.at(-1), doubles.at(-1)))

// times multiplies G by k.
function times(k) {
  let sum = null
  for (let i = 0; k; i++, k >>= 1n) if (k & 1n) sum = add(sum, doubles[i])
  return sum
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
