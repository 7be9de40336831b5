-- For listing the orders of a network.
ALTER TABLE ramp_orders ADD INDEX ramp_orders_network (network, accepted_at), ALGORITHM=INPLACE, LOCK=NONE;
