-- Sets the next score of a member of a due set, unless its score has changed since the
-- caller claimed it.
-- KEYS[1] cs:due:SHARD or cs:ready:SHARD
-- ARGV[1] member
-- ARGV[2] the score that it must have
-- ARGV[3] its next score, '' to remove it
-- Reply: 1 changed | 0 it has another score
local due_key = KEYS[1]
local member, expected, next_score = unpack(ARGV)

local held = redis.call('ZSCORE', due_key, member)
if not held or tonumber(held) ~= tonumber(expected) then
  return 0
end
if next_score == '' then
  redis.call('ZREM', due_key, member)
else
  redis.call('ZADD', due_key, next_score, member)
end
return 1
