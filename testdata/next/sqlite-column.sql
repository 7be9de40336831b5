-- A text of the player.
ALTER TABLE ramp_orders ADD COLUMN of_next_release TEXT;
