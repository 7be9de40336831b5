-- One row per order, as the JSON of a ramp.Order. The type json, unlike jsonb, keeps
-- every number exactly as it was written.
CREATE TABLE IF NOT EXISTS orders (
	uuid     uuid PRIMARY KEY,
	document json NOT NULL
);

-- One transaction ends one order. The store recognizes the index by its name.
CREATE UNIQUE INDEX IF NOT EXISTS orders_tx_hash ON orders ((document->>'tx_hash'));

-- To find orders that wait for a result:
-- SELECT document FROM orders WHERE document->>'state' = 'accepted' AND document->>'accepted_at' < '2026-11-21T08:00:00Z'
CREATE INDEX IF NOT EXISTS orders_waiting ON orders ((document->>'accepted_at')) WHERE document->>'state' = 'accepted';

-- The balances of players. A player has a row for each asset of the game.
CREATE TABLE IF NOT EXISTS balances (
	session_id text   NOT NULL,
	asset      text   NOT NULL,
	amount     bigint NOT NULL CHECK (amount >= 0),
	PRIMARY KEY (session_id, asset)
);
