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
-- KEYS[9] cs:doc:t:usage
-- ARGV[1] namespace
-- ARGV[2] install
-- ARGV[3] for how many ms the feed stays
-- Reply: 1 | 0 there are documents
-- The namespace's counts are those of its schema, and of crashes. They leave the tenant's counts
-- last: a crash before that leaves these too high, for a recount.
-- include integer.lua
-- include append.lua
-- include byte_order.lua
-- include document_usage.lua
local records_key, index_key, expiry_key, changes_key, schema_key = unpack(KEYS)
local usage_key, namespaces_key, expiring_key, tenant_usage_key = unpack(KEYS, 6)
local namespace, install, feed_ttl = unpack(ARGV)

if redis.call('ZCARD', index_key) > 0 then
  return 0
end
local counts = redis.call('HMGET', usage_key, unpack(namespace_count_fields(namespace)))
local tenant_counts = redis.call('HMGET', tenant_usage_key, unpack(tenant_count_fields))
local of_tenant = tenant_changes(install, tenant_counts, -tonumber(counts[1] or 0), -tonumber(counts[2] or 0))
redis.call('DEL', schema_key, records_key, expiry_key)
redis.call('ZREM', expiring_key, install .. '/' .. namespace)
redis.call('HDEL', usage_key, namespace .. ':r', namespace .. ':b', namespace .. ':w', namespace .. ':wr', namespace .. ':wb')
redis.call('SREM', namespaces_key, namespace)
redis.call('PEXPIRE', changes_key, feed_ttl)
change_counts(tenant_usage_key, tenant_count_fields, tenant_counts, of_tenant, -1)
return 1
