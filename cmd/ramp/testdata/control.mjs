// An integration test of a game's server, without Go: it drives an emulator through
// its control API (docs/control.md). Arguments: the emulator's address, and the
// access token of session-1.
import assert from 'node:assert/strict'

const [at, accessToken] = process.argv.slice(2)

async function call(method, path, body) {
  const response = await fetch(at + path, {
    method,
    headers: body ? { 'Content-Type': 'application/json' } : {},
    body: body && JSON.stringify(body),
  })
  const answer = await response.json()
  assert.equal(response.status, 200, answer.error?.message)
  return answer
}

const player = { session_id: 'session-1', access_token: accessToken }
const terms = {
  network: 'testnet', project_id: 'project-1', token: '0x00000000000000000000000000000000000070c3',
  materials: [{ id: 'item_gold', amount: 100 }], outputs: [{ id: 'item_gold', amount: 50 }],
}

async function order(name, request) {
  const o = await call('POST', '/control/orders', { ...player, terms, wait: '30s', ...request })
  assert.equal(o.state, 'done', o.said)
  assert.equal(o.over, true)
  console.log(`${name}: ${o.delivery}, moved ${o.moved.item_gold ?? 0}`)
  return o
}

const mint = await order('mint', { do: 'mint', amount: '3' })
assert.equal(mint.tx_status, 'succeeded')

const failed = await order('failed mint', { do: 'mint', faults: ['transaction-fails', 'result-twice'] })
assert.equal(failed.tx_status, 'failed')
assert.equal(failed.attempts, 2)

const burn = await order('burn', { do: 'burn' })
const { orders } = await call('GET', '/control/orders')
assert.deepEqual(orders.map(o => o.uuid), [burn.uuid, failed.uuid, mint.uuid])

// The stream of events goes on where the caller was. An event is a few lines of text.
const { events } = await call('GET', `/control/events?uuid=${burn.uuid}`)
const submitted = events.find(e => e.kind === 'chain')
const stream = await fetch(`${at}/control/events?uuid=${burn.uuid}`, {
  headers: { Accept: 'text/event-stream', 'Last-Event-ID': String(submitted.number) },
})
let text = ''
for await (const chunk of stream.body.pipeThrough(new TextDecoderStream())) {
  text += chunk
  if (text.match(/^data: /gm)?.length === 3 && text.endsWith('\n\n')) break
}
console.log('streamed:', [...text.matchAll(/^event: (.*)$/gm)].map(m => m[1]).join(' '))

const rejected = await fetch(at + '/control/advance', { method: 'POST', body: '{"by":"1h"}' })
assert.equal(rejected.status, 415, 'what a page of another site could send is rejected')
process.exit(0)
