-- Publishes a draft that equals the latest version: sets the alias, consumes
-- the draft, makes no version.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- KEYS[2] cs:fn:t:ns:fn:version_seq
-- KEYS[3] cs:fn:t:ns:fn:draft:id
-- KEYS[4] cs:fn:t:ns:fn:aliases      (with an alias only)
-- KEYS[5] cs:fn:t:ns:fn:alias:a      (with an alias only)
-- ARGV[1] version_seq as it was read
-- ARGV[2] the draft's first bytes as they were read
-- ARGV[3] the draft's tombstone
-- ARGV[4] the tombstone's time-to-live, ms
-- ARGV[5] the alias's name, ARGV[6] its record    (with an alias only)
-- Reply: 1 | CS_FUNCTION_NOT_FOUND | CS_STORE_CONFLICT
local fn = redis.call('GET', KEYS[1])
local deleted = fn and cjson.decode(fn).deleted_at_ms
if not fn or (deleted and deleted ~= cjson.null) then
  return redis.error_reply('CS_FUNCTION_NOT_FOUND no such function')
end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return redis.error_reply('CS_STORE_CONFLICT another version was published meanwhile')
end
if (redis.call('GETRANGE', KEYS[3], 0, #ARGV[2] - 1) or '') ~= ARGV[2] then
  return redis.error_reply('CS_STORE_CONFLICT the draft changed meanwhile')
end
if KEYS[5] then
  redis.call('ZADD', KEYS[4], 0, ARGV[5])
  redis.call('SET', KEYS[5], ARGV[6])
end
redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[4])
return 1
