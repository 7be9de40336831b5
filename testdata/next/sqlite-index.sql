-- For listing the orders of a network.
CREATE INDEX ramp_orders_network ON ramp_orders (network, accepted_at);
