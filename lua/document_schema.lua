-- Sets the schema of a namespace of documents, against which later writes are validated.
-- KEYS[1] cs:doc:t:i:ns:schema
-- KEYS[2] cs:doc:t:i:namespaces
-- ARGV[1] namespace
-- ARGV[2] the schema's digest in 64 characters, then the schema
-- Reply: 1 | 0 the namespace is not registered
local schema_key, namespaces_key = unpack(KEYS)
local namespace, schema = unpack(ARGV)

if redis.call('SISMEMBER', namespaces_key, namespace) == 0 then
  return 0
end
redis.call('SET', schema_key, schema)
return 1
