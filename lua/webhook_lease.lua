-- Takes, extends or ends the lease under which one replica delivers the webhooks of a tenant.
-- KEYS[1] cs:webhook:t:lease
-- ARGV[1] the token of the replica
-- ARGV[2] for how long, in ms; 0 ends the lease
-- Reply: 1 the replica has the lease, or has ended it | 0 another replica has it
local key = KEYS[1]
local token, ms = ARGV[1], tonumber(ARGV[2])

local held = redis.call('GET', key)
if held and held ~= token then
  return 0
end
if ms > 0 then
  redis.call('SET', key, token, 'PX', ms)
elseif held then
  redis.call('DEL', key)
end
return 1
