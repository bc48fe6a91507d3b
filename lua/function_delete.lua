-- Replaces a function's record by its deleted form, if it is still the one read.
-- KEYS[1] cs:fn:t:ns:fn:meta
-- ARGV[1] the record as it was read
-- ARGV[2] the record with deleted_at_ms set
-- Reply: 1 | CS_STORE_CONFLICT
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return redis.error_reply('CS_STORE_CONFLICT the function changed meanwhile')
end
redis.call('SET', KEYS[1], ARGV[2])
return 1
