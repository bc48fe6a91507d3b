-- Gives a member of a due set its next moment, if nobody gave it another since it
-- was claimed.
-- KEYS[1] cs:due:SHARD or cs:ready:SHARD
-- ARGV[1] member  ARGV[2] score that it must have  ARGV[3] next score, '' to remove it
-- Reply: 1 if it was so, else 0
local held = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not held or tonumber(held) ~= tonumber(ARGV[2]) then
  return 0
end
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
end
return 1
