-- Gives a namespace of documents its schema, to which every later write is held.
-- KEYS[1] cs:doc:t:i:ns:schema  KEYS[2] cs:doc:t:i:namespaces
-- ARGV[1] namespace  ARGV[2] the schema's digest in 64 characters, and the schema
-- Reply: 1 | 0 the namespace is not registered
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 0 then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2])
return 1
