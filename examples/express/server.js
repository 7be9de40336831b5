// A game's server on Express and PostgreSQL that is connected to the ramp. It sells gold: a
// token costs 10 gold and is worth 10. Copy it; docs/other-languages.md explains it.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { SigningKey } from 'ethers'
import express from 'express'
import pg from 'pg'

const { DATABASE_URL, RAMP_HMAC_KEY, RAMP_VALIDATOR_KEY, RAMP_API_URL, RAMP_FRONTEND_URL, PORT = 8080, TEST_LOGIN } = process.env
const [project, network, token, goldPerToken] = ['project-1', 'testnet', '0x00000000000000000000000000000000000070c3', 10]
const validator = new SigningKey(RAMP_VALIDATOR_KEY)
const pool = new pg.Pool({ connectionString: DATABASE_URL })
await pool.query(`SELECT pg_advisory_xact_lock(7242164); -- servers that start together take turns
  CREATE TABLE IF NOT EXISTS characters (session text PRIMARY KEY, token_hash text NOT NULL, gold bigint NOT NULL CHECK (gold >= 0));
  CREATE TABLE IF NOT EXISTS orders (uuid uuid PRIMARY KEY, session text NOT NULL REFERENCES characters,
    call text NOT NULL, mint boolean NOT NULL, gold bigint NOT NULL, state text NOT NULL DEFAULT 'accepted', tx_hash text UNIQUE)`)

const require = (condition, rejection, status = 200) => {
  if (!condition) throw Object.assign(new Error(rejection), { rejection, status })
}
const hmac = (body) => createHmac('sha256', RAMP_HMAC_KEY).update(body).digest()
const hash = (text) => createHash('sha256').update(text).digest('hex')

// read returns the body of a call, after its HMAC holds. The HMAC is of the raw bytes.
function read (call) {
  call.body ??= Buffer.alloc(0)
  const given = call.get('x-hmac-signature') ?? ''
  require(/^[0-9a-f]{64}$/i.test(given) && timingSafeEqual(Buffer.from(given, 'hex'), hmac(call.body)), 'INVALID_HMAC', 401)
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(call.body)
    const body = JSON.parse(text)
    // JSON.parse rounds numbers, so amounts are checked as they are written.
    const exact = [...text.matchAll(/"amount"\s*:\s*([^\s,}\]]*)/g)].every(([, amount]) => /^[1-9]\d{0,14}$/.test(amount))
    const uuid = /^(?!0{8}-0{4})[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(body.uuid) && body.uuid.toLowerCase()
    return { ...body, exact, uuid } // after the body, which may have members of any name
  } catch {
    require(false, 'INVALID_JSON', 400)
  }
}

async function authenticate (call) {
  const session = call.get('x-dapp-sessionid') ?? ''
  const [, accessToken = ''] = /^Bearer (\S+)$/.exec(call.get('x-dapp-authorization')) ?? []
  const { rows: [found] } = await pool.query('SELECT gold FROM characters WHERE session = $1 AND token_hash = $2', [session, hash(accessToken)])
  require(found, 'INVALID_USER', 401)
  return { session, accessToken, gold: found.gold }
}

// goldOf returns the gold of an order that is for the game's token at its price.
function goldOf ({ exact, intent }) {
  const mint = intent?.method === 'mint' && intent.type === 'assemble'
  require(mint || /^burn(-permit)?$/.test(intent?.method) && intent.type === 'disassemble', 'INVALID_METHOD', 400)
  const sides = [intent.from, intent.to]
  require(sides.every((side) => Array.isArray(side) && side.length === 1 && side[0]), 'INVALID_INTENT', 400)
  const [[asset], [tokens]] = mint ? sides : sides.reverse()
  require(exact && Number.isInteger(asset.amount) && Number.isInteger(tokens.amount), 'INVALID_AMOUNT')
  require(asset.type === 'asset' && asset.id === 'item_gold' && /^erc20$/i.test(tokens.type) &&
    String(tokens.id).toLowerCase() === token && asset.amount === tokens.amount * goldPerToken, 'INVALID_MESSAGE')
  return { mint, gold: asset.amount }
}

async function validate (call) {
  const body = read(call)
  const { session } = await authenticate(call)
  require(body.uuid && /^0x[0-9a-f]{64}$/i.test(body.digest) && /^(0x)?[0-9a-f]+$/i.test(body.user_sig) &&
    /^0x[0-9a-f]{40}$/i.test(body.user_address) && body.project_id === project, 'INVALID_MESSAGE', 400)
  const { mint, gold } = goldOf(body)
  const same = JSON.stringify([body.digest.toLowerCase(), body.user_address.toLowerCase(), body.intent])
  const validatorSig = validator.sign(body.digest).serialized
  // One statement stores the order and takes the gold. It does neither if the gold would become negative.
  const added = await pool.query(`WITH added AS (INSERT INTO orders (uuid, session, call, mint, gold)
      VALUES ($1, $2, $3, $4, $5) ON CONFLICT (uuid) DO NOTHING RETURNING mint),
    taken AS (UPDATE characters SET gold = gold - $5 FROM added WHERE session = $2 AND mint)
    SELECT 1 FROM added`, [body.uuid, session, same, mint, gold])
  if (!added.rowCount) {
    const repeat = "SELECT 1 FROM orders WHERE uuid = $1 AND session = $2 AND call = $3 AND state = 'accepted'"
    require((await pool.query(repeat, [body.uuid, session, same])).rowCount, 'KNOWN_ORDER')
  }
  return { userSig: body.user_sig, validatorSig } // only now, when the gold is taken
}

async function result (call) {
  const body = read(call)
  const status = body.receipt?.status
  require(body.uuid && status !== undefined && status !== null, 'UNREADABLE', 500)
  const state = status === 1 || /^0x0*1$/.test(status) ? 'succeeded' : 'failed'
  // A mint that failed gives its gold back, and a burn that succeeded grants it.
  const ended = await pool.query(`WITH ended AS (UPDATE orders SET state = $2, tx_hash = $3
      WHERE uuid = $1 AND state = 'accepted' RETURNING session, mint, gold),
    moved AS (UPDATE characters c SET gold = c.gold + ended.gold FROM ended WHERE c.session = ended.session AND mint = ($2 = 'failed'))
    SELECT 1 FROM ended`, [body.uuid, state, body.tx_hash ? String(body.tx_hash).toLowerCase() : null])
  if (!ended.rowCount) {
    const { rows: [order] } = await pool.query('SELECT state FROM orders WHERE uuid = $1', [body.uuid])
    require(order?.state === state, order ? 'OTHER_OUTCOME' : 'UNKNOWN_ORDER', 500) // a person must look
  }
  return null
}

async function assets (call) {
  const { session, gold } = await authenticate(call)
  return { v1: { player_id: session, assets: [{ id: 'item_gold', balance: gold }] } }
}

// exchange starts an order for a player of the game, and returns the page for the webview.
async function exchange (call) {
  const { session, accessToken } = await authenticate(call)
  const gold = [{ id: 'item_gold', amount: goldPerToken, icon_url: 'https://example.com/gold.png', is_non_fungible: false }]
  const body = JSON.stringify({ intent: { network, project_id: project, token, mint_fee_bps: 0, burn_fee_bps: 0, mint_method: 'mint', burn_method: 'burn-permit', materials: gold, outputs: gold } })
  const answer = await fetch(RAMP_API_URL + '/api/v2/initialize', { method: 'POST', body,
    headers: { 'Content-Type': 'application/json', 'X-HMAC-SIGNATURE': hmac(body).toString('hex') } })
  const { code, message, data } = await answer.json()
  if (code !== 200) throw new Error(`initialize: ${code} ${message}: ${JSON.stringify(data)}`)
  return RAMP_FRONTEND_URL + '/exchange?' + new URLSearchParams({ uuid: data.uuid, accessToken, sessionId: session, network })
}

// login makes a new character for tests. Your game has its own.
async function login () {
  const [sessionId, accessToken] = [randomBytes(12).toString('hex'), randomBytes(18).toString('base64url')]
  await pool.query('INSERT INTO characters VALUES ($1, $2, 1000)', [sessionId, hash(accessToken)])
  return { sessionId, accessToken }
}

const answer = (work) => async (call, response) => response.json({ success: true, errorCode: null, data: await work(call) })
const app = express()
app.use(express.raw({ type: () => true, limit: '1mb' }))
app.get('/api/assets', answer(assets))
app.post('/api/validate', answer(validate))
app.post('/api/result', answer(result))
app.post('/exchange', answer(exchange))
if (TEST_LOGIN) app.post('/login', async (_, response) => response.json(await login()))
app.use(() => require(false, 'NOT_FOUND', 404))
app.use((error, call, response, _) => {
  if (error.code === '23514') Object.assign(error, { rejection: 'INVALID_BALANCE', status: 200 }) // the CHECK of gold
  const status = call.path === '/api/result' ? 500 : error.status ?? 500 // a result is repeated only after 500
  if (status === 500) console.error(error)
  response.status(status).json({ success: false, errorCode: error.rejection ?? 'INTERNAL', data: null })
})
const server = app.listen(PORT, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
