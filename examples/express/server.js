// A game's server on Express and PostgreSQL that is connected to the ramp. It sells gold: a
// token costs 10 gold and is worth 10. Copy it; docs/other-languages.md explains it.

import { createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'
import { SigningKey } from 'ethers'
import express from 'express'
import pg from 'pg'
import { base, initialize } from './initialize.js'
import { hash, openPage, schema, startOrder } from './pages.js'

const { DATABASE_URL, RAMP_HMAC_KEY, RAMP_VALIDATOR_KEY, RAMP_API_URL, RAMP_FRONTEND_URL, PORT = 8080, TEST_LOGIN } = process.env
const [project, network, token, goldPerToken] = ['project-1', 'testnet', '0x00000000000000000000000000000000000070c3', 10]
const validator = new SigningKey(RAMP_VALIDATOR_KEY)
const pool = new pg.Pool({ connectionString: DATABASE_URL })
await pool.query(`SELECT pg_advisory_xact_lock(7242164); -- servers that start together take turns
  CREATE TABLE IF NOT EXISTS characters (session text PRIMARY KEY, token_hash text NOT NULL, gold bigint NOT NULL CHECK (gold >= 0));
  CREATE TABLE IF NOT EXISTS orders (uuid uuid PRIMARY KEY, session text NOT NULL REFERENCES characters,
    call text NOT NULL, mint boolean NOT NULL, gold bigint NOT NULL CHECK (gold > 0), state text NOT NULL DEFAULT 'accepted', tx_hash text UNIQUE);
  ${schema}`)

const require = (condition, rejection, status = 200) => {
  if (!condition) throw Object.assign(new Error(rejection), { rejection, status })
}
const hmac = (body) => createHmac('sha256', RAMP_HMAC_KEY).update(body).digest()

const isSigned = (call) => /^[0-9a-f]{64}$/i.test(call.get('x-hmac-signature') ?? '')

// read returns the body of a call, after its HMAC holds. The HMAC is of the raw bytes. JSON.parse
// rounds numbers, so body.exact is the same body with the text of each number in its place.
function read (call) {
  call.body ??= Buffer.alloc(0)
  require(isSigned(call) && timingSafeEqual(Buffer.from(call.get('x-hmac-signature'), 'hex'), hmac(call.body)), 'INVALID_HMAC', 401)
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(call.body)
    const body = JSON.parse(text)
    const stringsAndNumbers = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g
    const exact = JSON.parse(text.replace(stringsAndNumbers, (token) => token[0] === '"' ? token : `"${token}"`))
    const uuid = /^(?!0{8}-0{4})[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(body.uuid) && body.uuid.toLowerCase()
    return { ...body, exact, uuid } // after the body, which may have members of any name
  } catch {
    require(false, 'INVALID_JSON', 400)
  }
}

// find returns a row with the session and the hash of the token of a call.
async function find (query, call) {
  const [, accessToken = ''] = /^Bearer (\S+)$/.exec(call.get('x-dapp-authorization')) ?? []
  const { rows: [found] } = await pool.query(query, [call.get('x-dapp-sessionid') ?? '', hash(accessToken)])
  require(found, 'INVALID_USER', 401)
  return found
}

// authenticate returns who has opened the page of a call of the service, and for which order. The token
// of the login opens no page.
const authenticate = (call) => find(`SELECT session, gold, uuid AS page FROM pages JOIN characters USING (session)
  WHERE session = $1 AND pages.token_hash = $2 AND expires_at > now()`, call)

// loggedIn returns the session of a call of the game's own client.
const loggedIn = async (call) => (await find('SELECT session FROM characters WHERE session = $1 AND token_hash = $2', call)).session

// goldOf returns the gold of an order that is for the game's token at its price.
function goldOf ({ exact, intent }) {
  const mint = intent?.method === 'mint' && intent.type === 'assemble'
  require(mint || /^burn(-permit)?$/.test(intent?.method) && intent.type === 'disassemble', 'INVALID_METHOD', 400)
  const [assets, tokens] = mint ? ['from', 'to'] : ['to', 'from']
  for (const side of [assets, tokens]) {
    require(Array.isArray(intent[side]) && intent[side].length === 1 && intent[side][0], 'INVALID_INTENT', 400)
    require(typeof intent[side][0].amount === 'number' && /^[1-9]\d{0,14}$/.test(exact.intent[side][0].amount), 'INVALID_AMOUNT')
  }
  const [[asset], [minted]] = [intent[assets], intent[tokens]]
  require(asset.type === 'asset' && asset.id === 'item_gold' && /^erc20$/i.test(minted.type) &&
    String(minted.id).toLowerCase() === token && asset.amount === minted.amount * goldPerToken, 'INVALID_MESSAGE')
  return { mint, gold: asset.amount }
}

async function validate (call) {
  const body = read(call)
  require(body.digest || !body.receipt, 'RESULT_AT_VALIDATE', 500) // the addresses in the console are swapped
  const { session, page } = await authenticate(call)
  require(body.uuid && /^0x[0-9a-f]{64}$/i.test(body.digest) && /^(0x)?[0-9a-f]+$/i.test(body.user_sig) &&
    /^0x[0-9a-f]{40}$/i.test(body.user_address) && body.project_id === project, 'INVALID_MESSAGE', 400)
  require(page === body.uuid, 'INVALID_USER') // a page without an order shows assets only
  const { mint, gold } = goldOf(body)
  const same = JSON.stringify([body.digest.toLowerCase(), body.user_address.toLowerCase(), body.exact.intent])
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

// outcome returns the state in which a receipt's status ends an order. What is neither a number nor
// hex may be either, so nothing moves, and the result comes again.
function outcome (status) {
  require(Number.isInteger(status) || /^0x[0-9a-f]+$/i.test(typeof status === 'string' ? status : ''), 'UNREADABLE', 500)
  return Number(status) === 1 ? 'succeeded' : 'failed'
}

async function result (call) {
  const body = read(call)
  require(body.uuid, 'UNREADABLE', 500)
  const state = outcome(body.receipt?.status)
  const hash = String(body.tx_hash ?? '').toLowerCase()
  const txHash = /^0x(?!0{64})[0-9a-f]{64}$/.test(hash) ? hash : null
  // A mint that failed gives its gold back, and a burn that succeeded grants it.
  const ended = await pool.query(`WITH ended AS (UPDATE orders SET state = $2, tx_hash = $3
      WHERE uuid = $1 AND state = 'accepted' RETURNING session, mint, gold),
    moved AS (UPDATE characters c SET gold = c.gold + ended.gold FROM ended WHERE c.session = ended.session AND mint = ($2 = 'failed'))
    SELECT 1 FROM ended`, [body.uuid, state, txHash])
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

// open returns the token of a new page.
async function open (session) {
  const accessToken = await openPage(pool, session) // before the service is asked, because it limits that
  require(accessToken, 'TOO_MANY_PAGES', 429)
  return accessToken
}

const address = (view, parameters) => base(RAMP_FRONTEND_URL) + view + '?' + new URLSearchParams(parameters)

// exchange starts an order for a player of the game, and returns the page for the webview, which opens for
// so many seconds.
async function exchange (call) {
  const sessionId = await loggedIn(call)
  const accessToken = await open(sessionId)
  const gold = [{ id: 'item_gold', amount: goldPerToken, icon_url: 'https://example.com/gold.png', is_non_fungible: false }]
  const uuid = await initialize(RAMP_API_URL, RAMP_HMAC_KEY, { intent: { network, project_id: project, token, mint_fee_bps: 0, burn_fee_bps: 0, mint_method: 'mint', burn_method: 'burn-permit', materials: gold, outputs: gold } })
  await startOrder(pool, accessToken, uuid)
  return { url: address('/exchange', { uuid, accessToken, sessionId, network }), expiresIn: 300 }
}

// catalog returns the page that shows a player's assets.
async function catalog (call) {
  const sessionId = await loggedIn(call)
  return { url: address('/catalog', { projectId: project, sessionId, accessToken: await open(sessionId), platform: 'web', network }) }
}

// login makes a new character for tests. Your game has its own.
async function login () {
  const [sessionId, accessToken] = [randomBytes(12).toString('hex'), randomBytes(18).toString('base64url')]
  await pool.query('INSERT INTO characters VALUES ($1, $2, 1000)', [sessionId, hash(accessToken)])
  return { sessionId, accessToken, pageToken: await open(sessionId) }
}

// page opens the page of an order that no service knows, for the judge.
async function page ({ body: { sessionId, accessToken } }) {
  const { rowCount } = await pool.query('SELECT 1 FROM characters WHERE session = $1 AND token_hash = $2', [sessionId, hash(accessToken)])
  require(rowCount, 'INVALID_USER', 401)
  const opened = { uuid: randomUUID(), accessToken: await open(sessionId) }
  await startOrder(pool, opened.accessToken, opened.uuid)
  return opened
}

const answer = (work) => async (call, response) => response.json({ success: true, errorCode: null, data: await work(call) })
// No other parser may run, and this one must not unpack: the HMAC is of the raw body.
const raw = express.raw({ type: () => true, limit: '1mb', inflate: false })
const app = express()
app.get('/api/assets', answer(assets))
app.post('/api/validate', raw, answer(validate))
app.post('/api/result', raw, answer(result))
app.post('/exchange', answer(exchange))
app.post('/catalog', answer(catalog))
if (TEST_LOGIN) {
  app.post('/login', async (_, response) => response.json(await login()))
  app.post('/page', express.json(), async (call, response) => response.json(await page(call)))
}
app.use(() => require(false, 'NOT_FOUND', 404))
app.use((error, call, response, _) => {
  if (error.code === '23514') Object.assign(error, { rejection: 'INVALID_BALANCE', status: 200 }) // the CHECK of gold
  // A result is repeated only after 500. So what may be one gets nothing else: each call to the path
  // of results, which Express also finds as /API/result/, and each signed call that has no path here.
  const path = call.route?.path
  const mayBeResult = path === '/api/result' || !path && (isSigned(call) || call.method === 'POST' && /\/result\/*$/i.test(call.path))
  const status = mayBeResult ? 500 : error.status ?? 500
  if (status === 500) console.error(error)
  response.status(status).json({ success: false, errorCode: error.rejection ?? 'INTERNAL', data: null })
})
const server = app.listen(PORT, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
