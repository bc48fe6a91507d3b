-- Adds a namespace of documents and its install to their lists. The namespace comes
-- last: it counts as registered once it is listed, and the feed that an earlier one of
-- its name left is kept.
-- KEYS[1] cs:doc:t:i:namespaces
-- KEYS[2] cs:doc:t:installs
-- KEYS[3] cs:doc:t:i:ns:changes
-- KEYS[4] cs:doc:t:names
-- ARGV[1] namespace
-- ARGV[2] install
-- ARGV[3] namespaces that an install may have
-- ARGV[4] installs that a tenant may have
-- Reply: 1 | 0 the install's limit is reached | -1 the tenant's limit is reached
local namespaces_key, installs_key, changes_key, names_key = unpack(KEYS)
local namespace, install, namespace_limit, install_limit = unpack(ARGV)

if redis.call('SISMEMBER', namespaces_key, namespace) == 1 then
  return 1
end
if redis.call('SCARD', namespaces_key) >= tonumber(namespace_limit) then
  return 0
end
if redis.call('ZCARD', installs_key) >= tonumber(install_limit) and not redis.call('ZSCORE', installs_key, install) then
  return -1
end
redis.call('ZADD', installs_key, 0, install)
redis.call('ZADD', names_key, 0, install .. '/' .. namespace)
-- PERSIST fails on a key that expires at that moment; PEXPIRE replies 0.
local ttl = redis.call('PTTL', changes_key)
if ttl >= 0 and redis.call('PEXPIRE', changes_key, ttl + 60000) == 1 then
  redis.call('PERSIST', changes_key)
end
redis.call('SADD', namespaces_key, namespace)
return 1
