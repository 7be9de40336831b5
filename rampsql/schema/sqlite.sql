-- Orders of the token ramp, for SQLite 3.37 or newer. Create the tables in
-- your migrations.
CREATE TABLE IF NOT EXISTS ramp_orders (
    uuid         TEXT    NOT NULL PRIMARY KEY,
    claim        TEXT    NOT NULL, -- random: identifies the step that last wrote the row
    state        TEXT    NOT NULL CHECK (state IN ('accepted', 'succeeded', 'failed', 'abandoned')),
    direction    TEXT    NOT NULL CHECK (direction IN ('mint', 'burn')),
    network      TEXT    NOT NULL DEFAULT '', -- mainnet, testnet or ''
    project_id   TEXT    NOT NULL,
    session_id   TEXT    NOT NULL, -- the session that the order belongs to
    user_address TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    intent       TEXT    NOT NULL, -- JSON as text, so that amounts stay exact
    tx_hash      TEXT,             -- of the result, or NULL
    reason       TEXT    NOT NULL, -- who ended it by hand, and why, or ''
    settled      TEXT    NOT NULL DEFAULT '', -- how its end was settled without the game, or ''
    accepted_at  INTEGER NOT NULL, -- milliseconds since 1970, UTC
    finished_at  INTEGER           -- likewise, NULL while the order waits
) STRICT;

-- For listing waiting orders and deleting old ones.
CREATE INDEX IF NOT EXISTS ramp_orders_state ON ramp_orders (state, direction, accepted_at, uuid);

-- For listing the orders of a session.
CREATE INDEX IF NOT EXISTS ramp_orders_session ON ramp_orders (session_id, accepted_at, uuid);

-- For listing the orders of a wallet, in whatever case its address came.
CREATE INDEX IF NOT EXISTS ramp_orders_wallet ON ramp_orders (lower(user_address), accepted_at, uuid);

-- For listing the orders that ended between two times.
CREATE INDEX IF NOT EXISTS ramp_orders_ended ON ramp_orders (finished_at, uuid);

-- For finding the last success of a network, also without statistics.
CREATE INDEX IF NOT EXISTS ramp_orders_newest ON ramp_orders (network, state, finished_at, uuid);

-- One transaction ends one order.
CREATE UNIQUE INDEX IF NOT EXISTS ramp_orders_tx_hash ON ramp_orders (tx_hash);

-- Why the end of an order was refused: one row for each order whose result has failed.
CREATE TABLE IF NOT EXISTS ramp_refusals (
    uuid     TEXT    NOT NULL PRIMARY KEY,
    first_at INTEGER NOT NULL, -- milliseconds since 1970, UTC
    last_at  INTEGER NOT NULL, -- likewise
    refusals INTEGER NOT NULL, -- how many there were
    reason   TEXT    NOT NULL  -- of the last
) STRICT;

-- Which order has claimed a transaction, of all databases that sell the same tokens. It is used in one of them.
CREATE TABLE IF NOT EXISTS ramp_claims (
    network    TEXT    NOT NULL,
    tx_hash    TEXT    NOT NULL,
    place      INTEGER NOT NULL, -- 0, or for each further order of a batch how many have claimed before it
    uuid       TEXT    NOT NULL, -- of the order
    claimed_at INTEGER NOT NULL, -- milliseconds since 1970, UTC
    PRIMARY KEY (network, tx_hash, place)
) STRICT;
