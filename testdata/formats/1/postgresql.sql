-- Orders of the token ramp, for PostgreSQL 9.5 or newer. Create the table in
-- your migrations. At run time, the database user needs SELECT, INSERT and UPDATE
-- on it.
CREATE TABLE IF NOT EXISTS ramp_orders (
    uuid         uuid   PRIMARY KEY,
    claim        text   NOT NULL, -- random: identifies the step that last wrote the row
    state        text   NOT NULL CHECK (state IN ('accepted', 'succeeded', 'failed', 'abandoned')),
    direction    text   NOT NULL CHECK (direction IN ('mint', 'burn')),
    network      text   NOT NULL DEFAULT '', -- mainnet, testnet or ''
    project_id   text   NOT NULL,
    session_id   text   NOT NULL, -- the session that the order belongs to
    user_address text   NOT NULL,
    digest       text   NOT NULL,
    intent       text   NOT NULL, -- JSON as text, so that amounts stay exact
    tx_hash      text,            -- of the result, or NULL
    reason       text   NOT NULL, -- why it was abandoned, or ''
    settled      text   NOT NULL DEFAULT '', -- how its end was settled without the game, or ''
    accepted_at  bigint NOT NULL, -- milliseconds since 1970, UTC
    finished_at  bigint           -- likewise, NULL while the order waits
);

-- For listing waiting orders and deleting old ones.
CREATE INDEX IF NOT EXISTS ramp_orders_state ON ramp_orders (state, direction, accepted_at, uuid);

-- For listing the orders of a session.
CREATE INDEX IF NOT EXISTS ramp_orders_session ON ramp_orders (session_id, accepted_at, uuid);

-- For listing the orders of a wallet.
CREATE INDEX IF NOT EXISTS ramp_orders_user ON ramp_orders (user_address, accepted_at, uuid);

-- For listing the orders that ended between two times.
CREATE INDEX IF NOT EXISTS ramp_orders_ended ON ramp_orders (finished_at, uuid);

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

-- Rows that this release has written.
INSERT INTO ramp_orders (uuid, claim, state, direction, network, project_id, session_id, user_address, digest, intent, tx_hash, reason, settled, accepted_at, finished_at) VALUES
    ('6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a01', 'CLAIMa1', 'accepted', 'mint', 'testnet', 'project-1', 'игрок-1', '0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb', '0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1',
        '{"method":"mint","type":"assemble","from":[{"type":"asset","id":"item_gold","amount":100},{"type":"asset","id":"меч","amount":0.5}],"to":[{"type":"ERC20","id":"0x00000000000000000000000000000000000070c3","amount":1}],"target_candidate":{}}',
        NULL, '', '', 1795000000123, NULL),
    ('6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a02', 'CLAIMa2', 'failed', 'mint', 'testnet', 'project-1', 'session-2', '0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb', '0xa2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2',
        '{"method":"mint","type":"assemble","from":[{"type":"asset","id":"item_gold","amount":100}],"to":[{"type":"ERC20","id":"0x00000000000000000000000000000000000070c3","amount":1}],"target_candidate":{}}',
        '0xc2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2', '', '', 1795000000123, 1795003600456),
    ('6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a03', 'CLAIMa3', 'accepted', 'burn', '', 'project-1', 'session-2', '0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb', '0xa3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3',
        '{"method":"burn-permit","type":"disassemble","from":[{"type":"ERC20","id":"0x00000000000000000000000000000000000070c3","amount":0.000000000000000001}],"to":[{"type":"asset","id":"item_gold","amount":1000000000000000000000000000001}],"target_candidate":{}}',
        NULL, '', '', 1795000000123, NULL),
    ('6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a04', 'CLAIMa4', 'succeeded', 'burn', 'mainnet', 'project-1', 'session-2', '0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb', '0xa4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4',
        '{"method":"burn-permit","type":"disassemble","from":[{"type":"ERC20","id":"0x00000000000000000000000000000000000070c3","amount":1}],"to":[{"type":"asset","id":"item_gold","amount":7}],"target_candidate":{}}',
        '0xc4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4', '', '', 1795000000123, 1795003600456),
    ('6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a05', 'CLAIMa5', 'abandoned', 'mint', '', 'project-1', 'session-2', '0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb', '0xa5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5',
        '{"method":"mint","type":"assemble","from":[{"type":"asset","id":"item_gold","amount":7}],"to":[{"type":"ERC20","id":"0x00000000000000000000000000000000000070c3","amount":1}],"target_candidate":{}}',
        NULL, 'alice: case 17', '', 1795000000123, 1795003600456),
    ('6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a06', 'CLAIMa6', 'failed', 'burn', '', 'project-1', 'session-2', '0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb', '0xa6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6',
        '{"method":"burn-permit","type":"disassemble","from":[{"type":"ERC20","id":"0x00000000000000000000000000000000000070c3","amount":1}],"to":[{"type":"asset","id":"item_gold","amount":7}],"target_candidate":{}}',
        NULL, '', '', 1795000000123, 1795003600456),
    ('6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a07', 'CLAIMa7', 'failed', 'mint', '', 'project-1', 'session-2', '0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb', '0xa7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7',
        '{"method":"mint","type":"assemble","from":[{"type":"asset","id":"item_gold","amount":7}],"to":[{"type":"ERC20","id":"0x00000000000000000000000000000000000070c3","amount":1}],"target_candidate":{}}',
        '0xc7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7', 'alice: the player is gone', 'by mail, игрок', 1795000000123, 1795003600456);
