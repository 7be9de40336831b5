-- Orders of the token ramp, for MySQL 8.0, MariaDB 10.5 and TiDB 8.5 or newer. Create the
-- tables in your migrations. At run time, the database user needs SELECT, INSERT and
-- UPDATE on them.
CREATE TABLE IF NOT EXISTS ramp_orders (
    uuid         CHAR(36)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    claim        VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- random: identifies the step that last wrote the row
    state        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (state IN ('accepted', 'succeeded', 'failed', 'abandoned')),
    direction    CHAR(4)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (direction IN ('mint', 'burn')),
    network      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '', -- mainnet, testnet or ''
    project_id   TEXT        NOT NULL,
    session_id   TEXT        NOT NULL, -- the session that the order belongs to
    user_address TEXT        CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL, -- an address has no case
    digest       CHAR(66)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    intent       LONGTEXT    NOT NULL, -- JSON as text, so that amounts stay exact
    tx_hash      CHAR(66)    CHARACTER SET ascii COLLATE ascii_bin NULL, -- of the result, or NULL
    reason       TEXT        NOT NULL, -- who ended it by hand, and why, or ''
    settled      VARCHAR(4096) NOT NULL DEFAULT '', -- how its end was settled without the game, or ''
    accepted_at  BIGINT      NOT NULL, -- milliseconds since 1970, UTC
    finished_at  BIGINT      NULL,     -- likewise, NULL while the order waits
    UNIQUE KEY ramp_orders_tx_hash (tx_hash), -- one transaction ends one order
    KEY ramp_orders_state (state, direction, accepted_at, uuid), -- for listing waiting orders and deleting old ones
    KEY ramp_orders_session (session_id(255)),                   -- for listing the orders of a session
    KEY ramp_orders_wallet (user_address(255)),                  -- for listing the orders of a wallet
    KEY ramp_orders_ended (finished_at, uuid),                   -- for listing the orders that ended between two times
    KEY ramp_orders_newest (network, state, finished_at, uuid)   -- for finding the last success of a network, also without statistics
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Why the end of an order was refused: one row for each order whose result has failed.
CREATE TABLE IF NOT EXISTS ramp_refusals (
    uuid     CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    first_at BIGINT   NOT NULL, -- milliseconds since 1970, UTC
    last_at  BIGINT   NOT NULL, -- likewise
    refusals BIGINT   NOT NULL, -- how many there were
    reason   TEXT     NOT NULL  -- of the last
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Which order has claimed a transaction, of all databases that sell the same tokens. It is used in one of them.
CREATE TABLE IF NOT EXISTS ramp_claims (
    network    VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    tx_hash    CHAR(66)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    place      BIGINT      NOT NULL, -- 0, or for each further order of a batch how many have claimed before it
    uuid       CHAR(36)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- of the order
    claimed_at BIGINT      NOT NULL, -- milliseconds since 1970, UTC
    PRIMARY KEY (network, tx_hash, place)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
