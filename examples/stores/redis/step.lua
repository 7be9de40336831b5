-- Takes one step of an order, whole or not at all. Redis runs a script alone, and
-- writes what it changed to the append-only file as one transaction.
--
-- KEYS: the order, the balances of its player.
-- ARGV: the document that the step replaces ("" for none), the new document, and
-- then for each asset its ID, the quantity, and the sign of its movement.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
	return 'LOST'
end
-- Redis adds exactly; a number of Lua would be rounded above 2^53. Lua looks at
-- the sign of a balance only, which rounding keeps.
local function add(i, sign)
	return redis.pcall('HINCRBY', KEYS[2], ARGV[i], (sign == '-' and '-' or '') .. ARGV[i + 1])
end
local function undo(last) -- because Redis undoes nothing when a script fails
	for i = last, 3, -3 do
		if ARGV[i + 2] ~= '0' then
			add(i, ARGV[i + 2] == '-' and '+' or '-')
		end
	end
end
for i = 3, #ARGV, 3 do
	if redis.call('HEXISTS', KEYS[2], ARGV[i]) == 0 then
		undo(i - 3)
		return 'BALANCE'
	end
	local balance = ARGV[i + 2] == '0' and 0 or add(i, ARGV[i + 2])
	if type(balance) == 'table' then -- an error: above the largest number, or no number
		undo(i - 3)
		return balance
	elseif balance < 0 then
		undo(i)
		return 'BALANCE'
	end
end
redis.call('SET', KEYS[1], ARGV[2])
return 'STORED'
