-- Sets or removes the schema of a namespace of documents, against which later writes are
-- validated. Its bytes count as bytes of the namespace.
-- KEYS[1] cs:doc:t:i:ns:schema
-- KEYS[2] cs:doc:t:i:namespaces
-- KEYS[3] cs:doc:t:i:usage
-- KEYS[4] cs:doc:t:usage
-- ARGV[1] namespace
-- ARGV[2] install
-- ARGV[3] the schema's digest in 64 characters, then the schema; '' to remove it
-- ARGV[4 to 7] quotas, 0 for none: records and bytes of the namespace, then of the tenant
-- Reply: {'ok', 1 if there was a schema, else 0} | {'quota', scope, unit, limit, used}
--   | {'register'} the namespace is not registered
-- include integer.lua
-- include append.lua
-- include byte_order.lua
-- include document_usage.lua
local schema_key, namespaces_key, usage_key, tenant_usage_key = unpack(KEYS)
local namespace, install, schema = unpack(ARGV, 1, 3)
local quotas = {unpack(ARGV, 4, 7)}

if schema ~= '' and redis.call('SISMEMBER', namespaces_key, namespace) == 0 then
  return {'register'}
end
local held_bytes = redis.call('STRLEN', schema_key)
local fields = namespace_count_fields(namespace)
local counts = redis.call('HMGET', usage_key, unpack(fields))
local tenant_counts = redis.call('HMGET', tenant_usage_key, unpack(tenant_count_fields))
-- Bytes of a schema that an earlier release has set may not be counted yet.
local added_bytes = math.max(#schema - held_bytes, -tonumber(counts[2] or 0))
local exceeded = exceeded_quota(quotas, counts, tenant_counts, 0, added_bytes)
if exceeded then
  return exceeded
end
-- A recount reads the size of the schema in its last step, so its own counts do not change.
local changes = {0, added_bytes}
local of_tenant = tenant_changes(install, tenant_counts, 0, added_bytes)
change_counts(tenant_usage_key, tenant_count_fields, tenant_counts, of_tenant, 1)
change_counts(usage_key, fields, counts, changes, 1)
if schema ~= '' then
  redis.call('SET', schema_key, schema)
else
  redis.call('DEL', schema_key)
end
change_counts(usage_key, fields, counts, changes, -1)
change_counts(tenant_usage_key, tenant_count_fields, tenant_counts, of_tenant, -1)
return {'ok', held_bytes > 0 and 1 or 0}
