// Each page has a token of its own. The address of a page lands in histories, crash reports and
// screenshots. Whoever finds one has a token that opens one order of one player for an hour, and not
// the token with which the player's game is logged in. Copy this file with its table.

import { createHash, randomBytes } from 'node:crypto'

export const hash = (text) => createHash('sha256').update(text).digest('hex')

export const schema = `CREATE TABLE IF NOT EXISTS pages (token_hash text PRIMARY KEY, session text NOT NULL, uuid uuid,
  opened_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL DEFAULT now() + interval '1 hour');
  CREATE INDEX IF NOT EXISTS pages_opened ON pages (session, opened_at)`

// A session may open so many pages in a minute. The service limits initialize calls, too, but its limit
// is one for all players. A few more that are opened at once may pass.
const maxPages = 20

// openPage returns the token of a new page of a session that is logged in, or undefined if there are too
// many. The page shows assets only, until startOrder binds it to an order.
export async function openPage (pool, session) {
  const token = randomBytes(18).toString('base64url')
  await pool.query("DELETE FROM pages WHERE session = $1 AND expires_at < now()", [session])
  const opened = await pool.query(`INSERT INTO pages (token_hash, session) SELECT $1, $2
    WHERE (SELECT count(*) FROM pages WHERE session = $2 AND opened_at > now() - interval '1 minute') < $3`, [hash(token), session, maxPages])
  return opened.rowCount ? token : undefined
}

// startOrder binds a page to the only order for which it may ask.
export const startOrder = (pool, token, uuid) =>
  pool.query('UPDATE pages SET uuid = $2 WHERE token_hash = $1 AND uuid IS NULL', [hash(token), uuid])
