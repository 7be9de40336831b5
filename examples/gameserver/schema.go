// To make it yours: add the tables of your game, and remove those that you do not use, with their files.

package main

// schema creates the game's own tables. Balances are whole numbers. The game rejects
// fractions, so nothing is rounded. A negative balance is a debt, such as after a chargeback.
const schema = `
CREATE TABLE IF NOT EXISTS sessions (
    id         VARCHAR(64) NOT NULL PRIMARY KEY,
    player     VARCHAR(64) NOT NULL,
    token_hash VARCHAR(64) NOT NULL,
    expires_at BIGINT      NOT NULL -- of the token; the session itself is kept for late results
);
CREATE TABLE IF NOT EXISTS inventory (
    player  VARCHAR(64) NOT NULL,
    item    VARCHAR(64) NOT NULL,
    balance BIGINT      NOT NULL,
    PRIMARY KEY (player, item)
);
CREATE TABLE IF NOT EXISTS mailbox (
    order_id   VARCHAR(36) NOT NULL,
    item       VARCHAR(64) NOT NULL,
    session_id VARCHAR(64) NOT NULL, -- of the order
    amount     BIGINT      NOT NULL,
    taken      BIGINT      NOT NULL DEFAULT 0, -- 1 when the player has taken it
    PRIMARY KEY (order_id, item), UNIQUE (session_id, order_id, item) -- for lookups
);
CREATE TABLE IF NOT EXISTS swords (
    id       VARCHAR(64) NOT NULL PRIMARY KEY,
    player   VARCHAR(64) NOT NULL,
    order_id VARCHAR(64) NOT NULL DEFAULT '', -- the mint that reserved it, or took it
    token_id VARCHAR(80) NOT NULL DEFAULT '', -- the token that it is on the chain
    UNIQUE (player, id), UNIQUE (order_id, id), UNIQUE (token_id, id) -- for lookups
);
CREATE TABLE IF NOT EXISTS conflicts (
    uuid    VARCHAR(36) NOT NULL, -- of the order that a result contradicted
    field   VARCHAR(64) NOT NULL,
    tx_hash VARCHAR(66) NOT NULL, -- of the result
    state   VARCHAR(16) NOT NULL, -- of the order
    at      VARCHAR(20) NOT NULL, -- in RFC 3339, UTC
    closed  VARCHAR(999) NOT NULL DEFAULT '', -- who has resolved it, and why
    PRIMARY KEY (uuid, field, tx_hash)
);
CREATE TABLE IF NOT EXISTS moved ( -- what became tokens, for -cap
    item        VARCHAR(64) NOT NULL,
    who         VARCHAR(64) NOT NULL, -- a player, or empty for all
    hour        BIGINT NOT NULL, -- since 1970, the newest in which something moved
    in_hour     BIGINT NOT NULL,
    before_hour BIGINT NOT NULL, -- in the hour before it
    day         BIGINT NOT NULL,
    in_day      BIGINT NOT NULL,
    before_day  BIGINT NOT NULL,
    PRIMARY KEY (item, who), UNIQUE (item, hour, who), UNIQUE (item, day, who) -- for lookups
);
CREATE TABLE IF NOT EXISTS findings (
    id      VARCHAR(64) NOT NULL PRIMARY KEY, -- of what does not fit, the same in all books
    kind    VARCHAR(32) NOT NULL,
    uuid    VARCHAR(36) NOT NULL, -- of its first order, or empty
    tx_hash VARCHAR(66) NOT NULL, -- of its first event, or empty
    about   TEXT        NOT NULL, -- all its orders and events
    mint    BIGINT      NOT NULL, -- 1 if it is a mint that was not signed for an order
    detail  VARCHAR(999) NOT NULL,
    at      VARCHAR(20) NOT NULL, -- in RFC 3339, UTC
    entry   VARCHAR(36) NOT NULL DEFAULT '' -- of the decision that has ended it
);
CREATE TABLE IF NOT EXISTS shop (
    id     INTEGER      NOT NULL PRIMARY KEY, -- 1
    closed VARCHAR(999) NOT NULL -- who has closed it, and why; empty if it is open
);
CREATE TABLE IF NOT EXISTS decisions (
    id     VARCHAR(36)  NOT NULL PRIMARY KEY,
    at     VARCHAR(20)  NOT NULL, -- in RFC 3339, UTC
    name   VARCHAR(16)  NOT NULL, -- close, open, resolve or prune
    about  VARCHAR(99)  NOT NULL, -- the order or transaction of a conflict, or which orders were deleted
    who    VARCHAR(99)  NOT NULL,
    reason VARCHAR(999) NOT NULL
);
CREATE TABLE IF NOT EXISTS entries (
    id       VARCHAR(36)   NOT NULL PRIMARY KEY,
    at       BIGINT        NOT NULL, -- milliseconds since 1970, UTC
    who      VARCHAR(255)  NOT NULL,
    reason   VARCHAR(4096) NOT NULL,
    finding  VARCHAR(64)   NOT NULL,
    order_id VARCHAR(36)   NOT NULL, -- or ''
    tx_hash  VARCHAR(66)   NOT NULL, -- or ''
    moved    VARCHAR(4096) NOT NULL, -- JSON
    reverses VARCHAR(36)   NOT NULL, -- or ''
    UNIQUE (at, id) -- for lookups
);
CREATE TABLE IF NOT EXISTS wallets (
    wallet VARCHAR(42) NOT NULL PRIMARY KEY, -- in lower case
    player VARCHAR(64) NOT NULL
);
` + pagesSchema
