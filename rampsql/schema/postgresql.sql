-- Orders of the token ramp, for PostgreSQL 9.5 or newer. Create the tables in
-- your migrations. At run time, the database user needs SELECT, INSERT and UPDATE
-- on them.

-- Servers that start together take turns, if each runs this whole text at once or in one
-- transaction.
SELECT pg_advisory_xact_lock(7242163);

-- Indexes are of columns with the collation C, whose order no upgrade of the system changes.
CREATE TABLE IF NOT EXISTS ramp_orders (
    uuid         uuid   PRIMARY KEY,
    claim        text   NOT NULL, -- random: identifies the step that last wrote the row
    state        text   COLLATE "C" NOT NULL CHECK (state IN ('accepted', 'succeeded', 'failed', 'abandoned')),
    direction    text   COLLATE "C" NOT NULL CHECK (direction IN ('mint', 'burn')),
    network      text   COLLATE "C" NOT NULL DEFAULT '', -- mainnet, testnet or ''
    project_id   text   NOT NULL,
    session_id   text   COLLATE "C" NOT NULL, -- the session that the order belongs to
    user_address text   COLLATE "C" NOT NULL,
    digest       text   NOT NULL,
    intent       text   NOT NULL, -- JSON as text, so that amounts stay exact
    tx_hash      text   COLLATE "C", -- of the result, or NULL
    reason       text   NOT NULL, -- who ended it by hand, and why, or ''
    settled      text   NOT NULL DEFAULT '', -- how its end was settled without the game, or ''
    accepted_at  bigint NOT NULL, -- milliseconds since 1970, UTC
    finished_at  bigint           -- likewise, NULL while the order waits
);

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
    uuid     uuid   PRIMARY KEY,
    first_at bigint NOT NULL, -- milliseconds since 1970, UTC
    last_at  bigint NOT NULL, -- likewise
    refusals bigint NOT NULL, -- how many there were
    reason   text   NOT NULL  -- of the last
);

-- Which order has claimed a transaction, of all databases that sell the same tokens. It is used in one of them.
CREATE TABLE IF NOT EXISTS ramp_claims (
    network    text   COLLATE "C" NOT NULL,
    tx_hash    text   COLLATE "C" NOT NULL,
    place      bigint NOT NULL, -- 0, or for each further order of a batch how many have claimed before it
    uuid       uuid   NOT NULL, -- of the order
    claimed_at bigint NOT NULL, -- milliseconds since 1970, UTC
    PRIMARY KEY (network, tx_hash, place)
);
