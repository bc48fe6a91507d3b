-- Removes an install that has no namespace of documents any more; the list last, so that it
-- can be repeated.
-- KEYS[1] cs:doc:t:i:namespaces  KEYS[2] cs:doc:t:i:meta  KEYS[3] cs:doc:t:installs
-- ARGV[1] install
-- Reply: 1 | 0 there are namespaces
if redis.call('SCARD', KEYS[1]) > 0 then
  return 0
end
redis.call('DEL', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
