-- What an order is for, as the player wrote it.
ALTER TABLE ramp_orders ADD COLUMN memo TEXT;
