// The initialize call of the service (4.1), which goes on when the network or a gateway fails.

import { createHmac } from 'node:crypto'

const retries = 2
const maxWait = 30_000 // a longer Retry-After ends the attempts

const isUUID = (text) => /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(text)
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

// base returns an address to which a path is appended.
export const base = (address) => (address ?? '').replace(/\/+$/, '')

// initialize returns the UUID of a new order. timeout is for each attempt, up to the last byte of the answer.
export async function initialize (apiURL, key, request, timeout = 10_000) {
  const body = JSON.stringify(request)
  const headers = { 'Content-Type': 'application/json', 'X-HMAC-SIGNATURE': createHmac('sha256', key).update(body).digest('hex') }
  for (let attempt = 0; ; attempt++) {
    const backoff = Math.min(5_000, 200 * 2 ** attempt) * (0.5 + Math.random() / 2)
    let answer, text
    try { // a redirect is not followed: the signature would reach another address
      answer = await fetch(base(apiURL) + '/api/v2/initialize', { method: 'POST', body, headers, redirect: 'manual', signal: AbortSignal.timeout(timeout) })
      text = await answer.text()
    } catch (cause) {
      if (attempt === retries) throw new Error('initialize: no answer', { cause })
      await sleep(backoff)
      continue
    }
    const { uuid, problem, isFinal } = read(answer, text)
    if (uuid) return uuid
    const wait = Math.max(backoff, retryAfter(answer))
    if (isFinal || attempt === retries || wait > maxWait) throw new Error('initialize: ' + problem)
    await sleep(wait)
  }
}

// read reads an answer by its status first: a gateway may answer with something like the envelope. The four
// failures of 7.1 are final under every status.
function read (answer, text) {
  let envelope
  try { envelope = JSON.parse(text) } catch { /* not the envelope */ }
  const { code, message, data } = envelope ?? {}
  if (answer.ok && code === 200 && isUUID(data?.uuid)) return { uuid: data.uuid }
  const failure = /^(x-hmac-signature is required|invalid mac|ramp not found|ramp not exists)\s*(:|$)/i
  const isFailure = typeof data === 'string' && failure.test(data.trim())
  let problem = `HTTP ${answer.status}`
  if (Number.isInteger(code)) {
    problem += `, code ${code} ${message}: ${JSON.stringify(data)}`
  } else if (answer.headers.get('location')) {
    problem += `, a redirect to ${answer.headers.get('location')}`
  } else {
    problem += `, without the envelope of the interface: ${text.slice(0, 200)}`
  }
  return { problem, isFinal: isFailure || ![429, 502, 503, 504].includes(answer.status) }
}

// retryAfter returns how many milliseconds an answer asks to wait. A time is compared with the time of the
// answer, because the two clocks may differ.
function retryAfter (answer) {
  const value = answer.headers.get('retry-after')?.trim() ?? ''
  if (/^\d+$/.test(value)) return value * 1000
  const sent = Date.parse(answer.headers.get('date') ?? '') || Date.now()
  return Math.max(0, (Date.parse(value) || 0) - sent)
}
