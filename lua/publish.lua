-- Publishes a draft as the function's next version.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- KEYS[2] cs:fn:t:ns:fn:version_seq
-- KEYS[3] cs:fn:t:ns:fn:draft:id
-- KEYS[4] cs:fn:t:ns:fn:versions
-- KEYS[5] cs:fn:t:ns:fn:ver:N:bundle
-- KEYS[6] cs:fn:t:ns:fn:ver:N:meta
-- KEYS[7] cs:fn:t:ns:fn:aliases      (with an alias only)
-- KEYS[8] cs:fn:t:ns:fn:alias:a      (with an alias only)
-- ARGV[1] version_seq as it was read (N - 1)
-- ARGV[2] N
-- ARGV[3] the draft's first bytes as they were read
-- ARGV[4] the bundle
-- ARGV[5] the version's record
-- ARGV[6] the draft's tombstone
-- ARGV[7] the tombstone's time-to-live, ms
-- ARGV[8] the alias's name, ARGV[9] its record    (with an alias only)
-- Reply: 1 | CS_FUNCTION_NOT_FOUND | CS_STORE_CONFLICT
-- A version exists once version_seq reaches it, so what comes before that write
-- is invisible, and a publish cut after it is completed by publishing again.
local fn = redis.call('GET', KEYS[1])
local deleted = fn and cjson.decode(fn).deleted_at_ms
if not fn or (deleted and deleted ~= cjson.null) then
  return redis.error_reply('CS_FUNCTION_NOT_FOUND no such function')
end
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[1] then
  return redis.error_reply('CS_STORE_CONFLICT another version was published meanwhile')
end
if (redis.call('GETRANGE', KEYS[3], 0, #ARGV[3] - 1) or '') ~= ARGV[3] then
  return redis.error_reply('CS_STORE_CONFLICT the draft changed meanwhile')
end
redis.call('SET', KEYS[5], ARGV[4])
redis.call('SET', KEYS[6], ARGV[5])
redis.call('ZADD', KEYS[4], ARGV[2], ARGV[2])
redis.call('SET', KEYS[2], ARGV[2])
if KEYS[8] then
  redis.call('ZADD', KEYS[7], 0, ARGV[8])
  redis.call('SET', KEYS[8], ARGV[9])
end
redis.call('SET', KEYS[3], ARGV[6], 'PX', ARGV[7])
return 1
