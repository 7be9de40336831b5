-- Applies one step of an order completely or not at all. While Redis runs a script, it
-- runs nothing else, and it writes the changes of the script to the append-only file
-- as one transaction.
--
-- KEYS: the order, the balances of its player, and the transaction by which the order
-- ends, which has the UUID of the order that has ended by it.
-- ARGV: the document that the step replaces ("" for none), the new document, the UUID
-- of the order ("" for a step without a transaction), and for each asset its ID, the
-- quantity, and the sign of the change: "-" to take, "+" to grant or give back, and "0"
-- for a burn that was just accepted, whose grant is only tried.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
	return 'LOST'
end
if ARGV[3] ~= '' then
	local other = redis.call('GET', KEYS[3])
	if other and other ~= ARGV[3] then
		return 'TAKEN ' .. other
	end
end
-- HINCRBY adds exactly, but Lua rounds numbers above 2^53. This script uses only the
-- sign of a balance, which rounding does not change.
local function add(i, sign)
	return redis.pcall('HINCRBY', KEYS[2], ARGV[i], (sign == '-' and '-' or '') .. ARGV[i + 1])
end
local function undo(last) -- because Redis does not roll back a script that fails
	for i = last, 4, -3 do
		if ARGV[i + 2] ~= '0' then
			add(i, ARGV[i + 2] == '-' and '+' or '-')
		end
	end
end
for i = 4, #ARGV, 3 do
	local sign = ARGV[i + 2]
	local owned = redis.call('HEXISTS', KEYS[2], ARGV[i]) == 1
	if sign == '-' and not owned then -- a grant creates a balance
		undo(i - 3)
		return 'BALANCE'
	end
	local balance = add(i, sign)
	if type(balance) == 'table' then -- an error: an overflow, or not a number
		undo(i - 3)
		return sign == '0' and 'BALANCE' or balance
	elseif sign == '-' and balance < 0 then -- only taking needs a balance: a debt may get a grant
		undo(i)
		return 'BALANCE'
	elseif sign == '0' and owned then
		add(i, '-')
	elseif sign == '0' then
		redis.call('HDEL', KEYS[2], ARGV[i])
	end
end
if ARGV[3] ~= '' then
	redis.call('SET', KEYS[3], ARGV[3])
end
redis.call('SET', KEYS[1], ARGV[2])
return 'STORED'
