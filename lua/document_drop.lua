-- Removes an empty namespace of documents: its schema, its counts and its entries in the
-- lists. Its feed stays for a while. The number of its last change stays for good, so
-- that a later namespace of the name does not use a number again.
-- KEYS[1] cs:doc:t:i:ns:records
-- KEYS[2] …:index
-- KEYS[3] …:expiry
-- KEYS[4] …:changes
-- KEYS[5] …:schema
-- KEYS[6] cs:doc:t:i:usage
-- KEYS[7] cs:doc:t:i:namespaces
-- KEYS[8] cs:doc:t:expiring
-- ARGV[1] namespace
-- ARGV[2] install
-- ARGV[3] for how many ms the feed stays
-- Reply: 1 | 0 there are documents
-- A recount subtracts from the tenant's counts what a crash had left in the
-- namespace's.
local records_key, index_key, expiry_key, changes_key, schema_key, usage_key, namespaces_key, expiring_key = unpack(KEYS)
local namespace, install, feed_ttl = unpack(ARGV)

if redis.call('ZCARD', index_key) > 0 then
  return 0
end
redis.call('DEL', schema_key, records_key, expiry_key)
redis.call('ZREM', expiring_key, install .. '/' .. namespace)
redis.call('HDEL', usage_key, namespace .. ':r', namespace .. ':b', namespace .. ':w', namespace .. ':wr', namespace .. ':wb')
redis.call('SREM', namespaces_key, namespace)
redis.call('PEXPIRE', changes_key, feed_ttl)
return 1
