// A game's server in Node. It is honest: it does what the interface says. -policy gives it
// rules that real games have, which are honest too. -fault gives it one bug.
//
// It prints its URL once it serves. A player who logs in owns 1000 of each asset. Its state
// is in memory. -data names a journal, from which a server that is started again reads it.

import { createHash, createHmac, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { sign } from './secp256k1.mjs'

const text = (value) => ({ type: 'string', default: value })
const { values: flags } = parseArgs({
  options: { port: text('0'), data: text(''), policy: text(''), fault: text(''), list: { type: 'boolean' }, sign: text('') },
  args: process.argv.slice(2).map((arg) => arg.replace(/^-(?=[a-z])/, '--'))
})

const consoleKey = 'the key of the console'
const signer = 0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdefn
const project = 'project-1'
const contract = '0x00000000000000000000000000000000c0ffee00'
const assetIDs = ['item_gold', 'item_gem']
const itemsPerToken = 2
const policies = flags.policy.split(',')
const bug = (name) => flags.fault === name
const rule = (name) => policies.includes(name)

// A Rejection is an answer other than a success.
class Rejection extends Error {
  constructor (code, status) {
    super(code)
    this.status = status ?? (rule('status-400') ? 400 : 200)
  }
}

function reject (code, status) { throw new Rejection(code, status) }

// The state.

let players = new Map() // by session: token, wallet, balances
let orders = new Map() // by uuid: session, digest, intent, mint, assets, state, approved, hash
const hashes = new Map() // by tx_hash: the uuid of the order that it ended

// save writes a player and an order to the journal before their change is visible.
function save (session, id) {
  if (!flags.data) return
  appendFileSync(flags.data, JSON.stringify({ session, player: players.get(session), id, order: orders.get(id) }) + '\n')
}

function load () {
  if (!flags.data || !existsSync(flags.data)) return
  for (const line of readFileSync(flags.data, 'utf8').trim().split('\n')) {
    const { session, player, id, order } = JSON.parse(line)
    players.set(session, player)
    if (order && !bug('orders-in-memory')) orders.set(id, order)
    if (order?.hash && !bug('hashes-in-memory')) hashes.set(order.hash, id)
  }
}

// reserved returns how much the open mints of a player will take.
function reserved (session, asset) {
  if (!rule('takes-at-result')) return 0
  let sum = 0
  for (const order of orders.values()) {
    if (order.session === session && order.mint && order.state === 'open') sum += order.assets[asset] ?? 0
  }
  return sum
}

// move adds what an order is about to a player's balances, or takes it from them. before
// are the balances as they were read.
function move (session, assets, by, before = players.get(session).balances) {
  const balances = players.get(session).balances
  const after = {}
  for (const [asset, amount] of Object.entries(assets)) {
    const balance = Object.hasOwn(before, asset) ? before[asset] : undefined
    if (balance === undefined && bug('unknown-assets-free')) continue
    if (balance === undefined) reject('UNKNOWN_ASSET')
    after[asset] = bug('text-added') && by > 0 ? Number(`${balance}${amount}`) : balance + by * amount
    if (by < 0 && after[asset] < reserved(session, asset)) reject('INVALID_BALANCE')
    if (bug('first-asset-kept')) balances[asset] = after[asset]
  }
  Object.assign(balances, after)
}

// Reading.

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)

function parse (body) {
  let value
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    reject('INVALID_JSON', 400)
  }
  if (!isObject(value)) reject('INVALID_JSON', 400)
  return value
}

function string (parent, name, form = /./) {
  if (typeof parent[name] !== 'string' || !form.test(parent[name])) reject('INVALID_' + name.toUpperCase(), 400)
  return parent[name]
}

const uuidForm = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i

function uuidOf (body) {
  const id = string(body, 'uuid', uuidForm)
  if (/^[0-]*$/.test(id)) reject('INVALID_UUID', 400)
  return id.toLowerCase()
}

function amountOf (entry) {
  let amount = entry.amount
  if (bug('text-added')) amount = amount && Number(amount)
  if (typeof amount !== 'number') reject('INVALID_AMOUNT', 400)
  if (rule('whole') && !Number.isSafeInteger(amount)) reject('INVALID_AMOUNT')
  if (!(amount > 0 && amount < Infinity)) reject('INVALID_AMOUNT')
  if (bug('32-bits')) amount |= 0
  if (bug('64-bits') && Number.isInteger(amount)) amount = Number(BigInt.asIntN(64, BigInt(amount)))
  if (bug('amounts-rounded')) amount = Math.round(amount)
  if (bug('amounts-truncated')) amount = parseInt(amount)
  return amount
}

function readIntent (intent) {
  if (bug('intent-optional') && intent === undefined) return { mint: true, assets: {} }
  if (!isObject(intent)) reject('INVALID_INTENT', 400)
  const method = string(intent, 'method')
  const type = string(intent, 'type')
  const mint = method === 'mint' && type === 'assemble'
  if (!mint && !(/^burn(-permit)?$/.test(method) && type === 'disassemble')) reject('INVALID_METHOD', 400)
  const items = entries(intent, mint ? 'from' : 'to', /^asset$/)
  const tokens = entries(intent, mint ? 'to' : 'from', /^(erc20|nft)$/i)
  if (rule('price')) checkTerms(items, tokens)
  const assets = Object.create(null)
  for (const { id, amount } of items) assets[id] = (bug('last-entry-only') ? 0 : assets[id] ?? 0) + amount
  return { mint, assets }
}

function entries (intent, side, types) {
  if (!Array.isArray(intent[side]) || intent[side].length === 0) reject('INVALID_' + side.toUpperCase(), 400)
  return intent[side].map((entry) => {
    if (!isObject(entry)) reject('INVALID_ENTRY', 400)
    string(entry, 'type', types)
    return { id: string(entry, 'id'), amount: amountOf(entry) }
  })
}

// checkTerms checks that the tokens are the game's, and worth the items.
function checkTerms (items, tokens) {
  const sum = (list) => list.reduce((sum, { amount }) => sum + amount, 0)
  if (tokens.length !== 1) reject('INVALID_MESSAGE')
  if (tokens.some(({ id }) => id.toLowerCase() !== contract)) reject('INVALID_MESSAGE')
  let paid = tokens[0].amount * itemsPerToken
  if (bug('tokens-32-bits')) paid = (tokens[0].amount | 0) * itemsPerToken
  if (bug('one-token-free') && paid > itemsPerToken) paid -= itemsPerToken
  const enough = paid === sum(items) || bug('ignores-rate') || bug('ignores-more-items') && paid < sum(items)
  if (!enough) reject('INVALID_MESSAGE')
}

// succeeded returns what the receipt of a result says.
function succeeded (body) {
  const status = body.receipt?.status
  if (bug('not-0x0-is-success')) return status !== '0x0'
  if (status === undefined || status === null) {
    if (rule('missing-fails')) return false
    reject('NO_STATUS', 500)
  }
  if (rule('literal-status')) return status === '0x1'
  return status === 1 || typeof status === 'string' && /^0x0*1$/.test(status)
}

// Who calls.

const mac = (key, body) => createHmac('sha256', key).update(body).digest()

function checkHMAC (call, endpoint) {
  if (bug('no-hmac-at-validate') && endpoint === 'validate') return
  const right = mac(bug('key-decoded') ? Buffer.from(consoleKey, 'base64url') : consoleKey, call.body)
  const header = call.header('x-hmac-signature')
  const given = Buffer.from(header, 'hex') // the bytes before the first text that is not hex
  if (bug('hmac-decoded-leniently') && timingSafeEqual(given, right.subarray(0, given.length))) return
  if (bug('hmac-prefix') && right.toString('hex').startsWith(header)) return
  if (header.length !== 64 || given.length !== 32 || !timingSafeEqual(given, right)) {
    reject('INVALID_HMAC', 401)
  }
}

// authenticate returns the session of the caller.
function authenticate (call, endpoint) {
  const [scheme, token] = call.header('x-dapp-authorization').split(' ')
  let session = call.header('x-dapp-sessionid')
  if (rule('digits')) session = String(Number.parseInt(session, 10))
  const player = players.get(session)
  if (!player) reject('INVALID_SESSION', 401)
  let right = scheme === 'Bearer' && token === player.token
  if (bug('token-prefix')) right = player.token.startsWith(token)
  if (bug('no-token-at-validate') && endpoint === 'validate') right = true
  if (!right) reject('INVALID_TOKEN', 401)
  return session
}

// The endpoints.

function login (call) {
  const name = string(parse(call.body), 'player')
  const session = rule('digits') ? String(randomInt(1e12, 2e12)) : 'session-of-' + name
  const token = randomBytes(18).toString('base64url')
  const wallet = '0x' + createHash('sha256').update(name).digest('hex').slice(0, 40)
  const balances = Object.fromEntries((rule('one-asset') ? assetIDs.slice(0, 1) : assetIDs).map((id) => [id, 1000]))
  players.set(session, { token, wallet, balances })
  save(session)
  return { sessionId: session, accessToken: token }
}

let first // the first player who asked

function assets (call) {
  const session = authenticate(call, 'assets')
  first ??= session
  const { wallet, balances } = players.get(bug('assets-of-another') ? first : session)
  const shown = Object.entries(balances).map(([id, balance]) => ({ id, balance: String(balance) }))
  if (rule('regenerates')) shown.push({ id: 'item_energy', balance: String(Math.floor(Date.now() / 50)) })
  const v1 = { player_id: 'player of ' + session, assets: shown }
  if (rule('wallet')) v1.wallet_address = wallet
  return success(bug('assets-flat') ? v1 : { v1 })
}

let lastDigest // of the latest call
let lastResult // the latest result

const waiting = new Map() // by what they wait for: the calls that wait

// oneByOne makes calls of the same kind wait for each other.
function oneByOne (kind, call) {
  const made = (waiting.get(kind) ?? Promise.resolve()).then(call)
  waiting.set(kind, made.catch(() => {}))
  return made
}

async function validate (call) {
  checkHMAC(call, 'validate')
  const body = parse(call.body)
  if (Object.hasOwn(body, 'receipt')) reject('RESULT_AT_VALIDATE', 500) // it comes again once the console is right
  const session = authenticate(call, 'validate')
  const id = uuidOf(body)
  const digest = string(body, 'digest', bug('digest-padded') ? /^0x[0-9a-f]{0,64}$/i : /^0x[0-9a-f]{64}$/i).toLowerCase()
  const address = string(body, 'user_address', /^0x[0-9a-f]{40}$/i)
  string(body, 'user_sig', /^(0x)?[0-9a-f]+$/i)
  if (string(body, 'project_id') !== project) reject('INVALID_PROJECT', 400)
  const { mint, assets } = readIntent(body.intent)
  lastDigest = digest
  if (bug('digest-shared')) await sleep(5)
  const data = { userSig: body.user_sig, validatorSig: signature(bug('digest-shared') ? lastDigest : digest) }
  if (bug('user-sig-in-lower-case')) data.userSig = data.userSig.toLowerCase()
  let known = orders.get(id)
  let balances = { ...players.get(session).balances }
  if (bug('uuid-checked-early') || bug('balance-read-early') || bug('endpoints-locked-apart')) await sleep(20)
  if (!bug('uuid-checked-early')) known = orders.get(id)
  if (!bug('balance-read-early') && !bug('endpoints-locked-apart')) balances = undefined
  approve({ id, session, digest, address, intent: JSON.stringify(body.intent), mint, assets, known, balances })
  return success(data)
}

// approve takes what an order costs and stores it. It does not wait for anything, so that
// no other call comes between.
function approve ({ id, session, digest, address, intent, mint, assets, known, balances }) {
  const player = players.get(session)
  if (rule('wallet') && address.toLowerCase() !== player.wallet) reject('INVALID_USER')
  if (known) {
    const owned = known.session === session || bug('orders-of-anyone')
    const same = known.digest === digest && known.intent === intent || bug('second-digest-signed')
    const open = known.state === 'open' || bug('finished-orders-approved')
    if (!owned || !same || !open || rule('no-repeats')) reject('KNOWN_ORDER')
    return
  }
  const own = [...orders.values()].filter((order) => order.session === session)
  if (rule('one-order') && own.some((order) => order.state === 'open')) reject('ORDER_OPEN', 400)
  if (rule('cooldown') && own.some((order) => order.approved > Date.now() - 1000)) reject('COOLDOWN', 400)
  const listed = (asset) => bug('assets-found-with-in') ? asset in player.balances : Object.hasOwn(player.balances, asset)
  if (!mint && !Object.keys(assets).every(listed)) reject('UNKNOWN_ASSET')
  if (mint && rule('takes-at-result')) {
    for (const [asset, amount] of Object.entries(assets)) {
      if (!(player.balances[asset] - reserved(session, asset) >= amount)) reject('INVALID_BALANCE')
    }
  } else if (mint) {
    move(session, assets, -1, balances)
  }
  orders.set(id, { session, digest, intent, mint, assets, state: 'open', approved: Date.now() })
  save(session, id)
}

async function result (call) {
  checkHMAC(call, 'result')
  let body = parse(call.body)
  lastResult = body
  if (bug('result-shared')) await sleep(5)
  if (bug('result-shared')) body = lastResult
  if (rule('token-at-result')) authenticate(call, 'result')
  const id = bug('uuid-kept-in-small-letters') ? body.uuid : uuidOf(body)
  let good = succeeded(body)
  if (bug('unknown-fields-rejected') && Object.keys(body).length > 5) reject('UNKNOWN_FIELD', 500)
  if (bug('type-7-unknown') && body.receipt.type !== '0x2') reject('INVALID_RECEIPT', 400)
  if (bug('fee-required') && typeof body.intent.fee_rate !== 'number') reject('INVALID_INTENT', 400)
  if (bug('receipt-pinned') && Object.keys(body.receipt).length !== 13) reject('INVALID_RECEIPT', 400)
  const order = orders.get(id)
  if (!order) reject('UNKNOWN_ORDER', 500)
  if (bug('type-7-is-success') && !order.mint && body.receipt.type === '0x7') good = true
  if (rule('strict') || rule('digits')) {
    const told = rule('digits') ? String(parseInt(body.session_id, 10)) : body.session_id
    if (told !== order.session) reject('INVALID_SESSION', 400)
  }
  if (rule('strict')) {
    const { fee_rate: _, actual: __, ...told } = body.intent ?? {}
    if (JSON.stringify(told) !== order.intent) reject('INVALID_INTENT', 400)
    string(body, 'tx_hash', /^0x[0-9a-f]{64}$/)
  }
  const state = good ? 'succeeded' : 'failed'
  let was = order.state
  if (bug('state-checked-early')) await sleep(20)
  if (was !== 'open' && was !== state && !bug('outcome-changes')) reject('OTHER_OUTCOME', 400)
  if (bug('repeats-by-body') && !(order.bodies ??= new Set()).has(String(call.body))) {
    order.bodies.add(String(call.body))
    was = 'open'
  }
  if (rule('one-hash')) {
    if ((hashes.get(body.tx_hash) ?? id) !== id || (order.hash ?? body.tx_hash) !== body.tx_hash) reject('OTHER_ORDER', 500)
    hashes.set(order.hash = body.tx_hash, id)
  }
  order.state = state
  if (was !== state) settle(order, body, call, good)
  save(order.session, id)
  if (bug('finished-orders-forgotten')) orders.delete(id)
  return success(null)
}

// settle moves what the outcome of an order moves.
function settle (order, body, call, good) {
  let { session, mint, assets } = order
  if (bug('direction-of-result')) ({ mint, assets } = readIntent(body.intent))
  if (bug('owner-of-result')) session = body.session_id
  if (bug('owner-of-header')) session = call.header('x-dapp-sessionid')
  let by = mint === good ? 0 : 1
  if (mint && rule('takes-at-result')) by = good ? -1 : 0
  if (by > 0 && rule('late')) setTimeout(move, 100, session, assets, by)
  else if (by) move(session, assets, by)
}

function signature (digest) {
  const bytes = Buffer.from(digest.slice(2).padStart(64, '0'), 'hex')
  const prefix = '\x19Ethereum Signed Message:\n32'
  const signed = sign(signer, bug('digest-prefixed') ? createHash('sha256').update(prefix).update(bytes).digest() : bytes)
  if (bug('v-always-27')) signed[64] = 27
  return (bug('signature-without-0x') ? '' : '0x') + signed.toString('hex')
}

const success = (data) => ({ success: true, errorCode: bug('error-code-empty') ? '' : null, data })

// HTTP.

const endpoints = { '/login': login, '/api/assets': assets, '/api/validate': validate, '/api/result': result }
const largest = rule('body-limit') ? 16 << 10 : 1 << 20
let second = 0
let seen = {}

// limit answers 429 to more than so many calls in a second.
function limit (what, most) {
  if (second !== Math.floor(Date.now() / 1000)) [second, seen] = [Math.floor(Date.now() / 1000), {}]
  seen[what] = (seen[what] ?? 0) + 1
  if (seen[what] > most) reject('TOO_MANY_CALLS', 429)
}

// read returns the body, or undefined if it is too large. It reads all of it, because a
// client that is still sending does not see an answer.
async function read (request) {
  const chunks = []
  let length = 0
  for await (const chunk of request) {
    if ((length += chunk.length) <= largest) chunks.push(chunk)
  }
  if (length <= largest) return Buffer.concat(chunks)
}

async function answer (request, response) {
  const path = request.url.split('?')[0]
  const endpoint = endpoints[path]
  const html = (status, title, header = {}) => {
    response.writeHead(status, { 'Content-Type': 'text/html', ...header })
    response.end(`<!doctype html><title>${title}</title><h1>${title}</h1>`)
  }
  if (!endpoint) return html(404, 'Not Found')
  if (bug('redirects') && request.method === 'POST' && endpoint !== login) return html(301, 'Moved Permanently', { Location: path + '/' })
  if (bug('csrf') && request.method === 'POST' && endpoint !== login) return html(403, 'CSRF token missing')
  if (bug('proxy-limits-bodies') && request.headers['content-length'] > 1000) return html(413, 'Request Entity Too Large')
  if (bug('result-unanswered') && endpoint === result) return
  let status = 200
  let value
  try {
    if (request.method !== (endpoint === assets ? 'GET' : 'POST')) reject('METHOD_NOT_ALLOWED', 405)
    if (rule('login-limit') && endpoint === login) limit('logins', 5)
    if (rule('call-limit') && endpoint !== login) limit('calls', 100)
    if (bug('limits-all') && endpoint !== login) reject('TOO_MANY_CALLS', 429)
    if (rule('latency') && endpoint !== login) await sleep(300)
    const body = await read(request)
    if (!body) reject('BODY_TOO_LARGE', endpoint === result ? 500 : 413) // a result comes again after 500 only
    if (bug('dies-of-exponents') && /"amount":[0-9.]+[eE][0-9]{6}/.test(body)) process.exit(1)
    const header = (name) => { // two headers of the same name are none
      const all = request.headersDistinct[name] ?? []
      if (bug('headers-in-lower-case') && !request.rawHeaders.includes(name)) return ''
      if (bug('headers-in-upper-case') && request.rawHeaders.includes('x-dapp-sessionid')) return ''
      return all.length === 1 ? all[0] : ''
    }
    const call = () => endpoint({ body, header })
    value = await (bug('endpoints-locked-apart') ? oneByOne(path + header('x-dapp-sessionid'), call) : call())
  } catch (error) {
    if (request.destroyed && !request.complete) return
    status = error instanceof Rejection ? error.status : 500
    value = { success: false, errorCode: error instanceof Rejection ? error.message : 'INTERNAL', data: null }
    if (bug('rejections-without-code')) delete value.errorCode
    if (process.env.VERBOSE && status === 500) console.error(error)
  }
  response.writeHead(status, {
    'Content-Type': 'application/json',
    ...(status === 429 && { 'Retry-After': '1' }),
    ...((value.errorCode === 'BODY_TOO_LARGE' || rule('closes')) && { Connection: 'close' })
  })
  response.end(JSON.stringify(value))
}

function main () {
  const source = readFileSync(new URL(import.meta.url), 'utf8')
  const names = (kind) => [...new Set([...source.matchAll(new RegExp(`\\b${kind}\\('([a-z0-9-]+)'\\)`, 'g'))].map((match) => match[1]))].sort()
  if (flags.list) {
    for (const name of names('bug')) console.log(name)
    return
  }
  if (flags.sign) {
    console.log(signature(flags.sign))
    return
  }
  for (const name of [flags.fault, ...policies]) {
    if (name && ![...names('bug'), ...names('rule')].includes(name)) throw new Error('no such fault or policy: ' + name)
  }
  load()
  const server = createServer((request, response) => answer(request, response).catch(() => response.destroy()))
  server.listen(Number(flags.port), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
}

main()
