-- Takes, renews or leaves one of the slots in which the activations of a queue trigger run.
-- KEYS[1] cs:trigger:t:ns:slots:q
-- ARGV[1] the slot's name, unique
-- ARGV[2] how many slots there are; 0 leaves the slot
-- ARGV[3] the present, Unix milliseconds
-- ARGV[4] when the slot ends unless it is renewed, Unix milliseconds
-- ARGV[5] for how long the key is kept, milliseconds
-- Reply: 1 taken, renewed or left | 0 all slots are taken
local key = KEYS[1]
local name, slots, now, ends, keep = unpack(ARGV)

if tonumber(slots) == 0 then
  redis.call('ZREM', key, name)
  return 1
end
redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
if not redis.call('ZSCORE', key, name) and redis.call('ZCARD', key) >= tonumber(slots) then
  return 0
end
redis.call('ZADD', key, ends, name)
redis.call('PEXPIRE', key, keep)
return 1
