-- One row for each order, in ramp.Order's JSON form. The type json keeps every
-- number as it was written.
CREATE TABLE IF NOT EXISTS orders (
	uuid     uuid PRIMARY KEY,
	document json NOT NULL
);

-- For the orders whose result has not come:
-- SELECT document FROM orders WHERE document->>'state' = 'accepted' AND document->>'accepted_at' < '2026-11-21T08:00:00Z'
CREATE INDEX IF NOT EXISTS orders_waiting ON orders ((document->>'accepted_at')) WHERE document->>'state' = 'accepted';

-- What players own. A player has a row for each asset that the game knows.
CREATE TABLE IF NOT EXISTS balances (
	session_id text   NOT NULL,
	asset      text   NOT NULL,
	amount     bigint NOT NULL CHECK (amount >= 0),
	PRIMARY KEY (session_id, asset)
);
