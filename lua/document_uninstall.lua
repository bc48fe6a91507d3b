-- Removes an install that has no namespace of documents left. Its entry in the list is
-- removed last, so that the call can be repeated.
-- KEYS[1] cs:doc:t:i:namespaces
-- KEYS[2] cs:doc:t:i:meta
-- KEYS[3] cs:doc:t:installs
-- ARGV[1] install
-- Reply: 1 | 0 there are namespaces
local namespaces_key, record_key, installs_key = unpack(KEYS)
local install = ARGV[1]

if redis.call('SCARD', namespaces_key) > 0 then
  return 0
end
redis.call('DEL', record_key)
redis.call('ZREM', installs_key, install)
return 1
