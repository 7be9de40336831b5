-- Orders of the token ramp, for PostgreSQL 9.5 or newer. Create the table with
-- your migrations. At run time a user needs SELECT, INSERT and UPDATE on it.
CREATE TABLE IF NOT EXISTS ramp_orders (
    uuid         uuid   PRIMARY KEY,
    claim        text   NOT NULL, -- random: identifies the step that wrote the row last
    state        text   NOT NULL CHECK (state IN ('accepted', 'succeeded', 'failed', 'abandoned')),
    direction    text   NOT NULL CHECK (direction IN ('mint', 'burn')),
    project_id   text   NOT NULL,
    session_id   text   NOT NULL, -- whose order it is
    user_address text   NOT NULL,
    digest       text   NOT NULL,
    intent       text   NOT NULL, -- JSON as text, so that amounts stay exact
    tx_hash      text   NOT NULL, -- '' until a result has come
    reason       text   NOT NULL, -- why it was abandoned, else ''
    accepted_at  bigint NOT NULL, -- milliseconds since 1970, UTC
    finished_at  bigint           -- the same; NULL while the order waits
);

-- Orders that wait, and old ones to delete.
CREATE INDEX IF NOT EXISTS ramp_orders_state ON ramp_orders (state, direction, accepted_at, uuid);

-- Orders of a session.
CREATE INDEX IF NOT EXISTS ramp_orders_session ON ramp_orders (session_id, accepted_at, uuid);
