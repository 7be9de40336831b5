-- Orders of the token ramp, for MySQL 8.0 and MariaDB 10.5 or newer. Create the
-- table in your migrations. At run time, the database user needs SELECT, INSERT and
-- UPDATE on it.
CREATE TABLE IF NOT EXISTS ramp_orders (
    uuid         CHAR(36)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    claim        VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- random: identifies the step that last wrote the row
    state        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (state IN ('accepted', 'succeeded', 'failed', 'abandoned')),
    direction    CHAR(4)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (direction IN ('mint', 'burn')),
    network      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '', -- mainnet, testnet or ''
    project_id   TEXT        NOT NULL,
    session_id   TEXT        NOT NULL, -- the session that the order belongs to
    user_address TEXT        NOT NULL,
    digest       CHAR(66)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    intent       LONGTEXT    NOT NULL, -- JSON as text, so that amounts stay exact
    tx_hash      CHAR(66)    CHARACTER SET ascii COLLATE ascii_bin NULL, -- of the result, or NULL
    reason       TEXT        NOT NULL, -- why it was abandoned, or ''
    settled      VARCHAR(4096) NOT NULL DEFAULT '', -- how its end was settled without the game, or ''
    accepted_at  BIGINT      NOT NULL, -- milliseconds since 1970, UTC
    finished_at  BIGINT      NULL,     -- likewise, NULL while the order waits
    UNIQUE KEY ramp_orders_tx_hash (tx_hash), -- one transaction ends one order
    KEY ramp_orders_state (state, direction, accepted_at, uuid), -- for listing waiting orders and deleting old ones
    KEY ramp_orders_session (session_id(255)),                   -- for listing the orders of a session
    KEY ramp_orders_user (user_address(255)),                    -- for listing the orders of a wallet
    KEY ramp_orders_ended (finished_at, uuid)                    -- for listing the orders that ended between two times
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Why the end of an order was refused: one row for each order whose result has failed.
CREATE TABLE IF NOT EXISTS ramp_refusals (
    uuid     CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    first_at BIGINT   NOT NULL, -- milliseconds since 1970, UTC
    last_at  BIGINT   NOT NULL, -- likewise
    refusals BIGINT   NOT NULL, -- how many there were
    reason   TEXT     NOT NULL  -- of the last
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

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
