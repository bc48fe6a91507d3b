-- Removes a namespace of documents that holds none any more: its schema, its counts and
-- its place in the lists. Its feed stays for a while, and the number of its last change for
-- good, so that none comes again.
-- KEYS[1] cs:doc:t:i:ns:records  KEYS[2] :index  KEYS[3] :expiry  KEYS[4] :changes  KEYS[5] :schema
-- KEYS[6] cs:doc:t:i:usage  KEYS[7] cs:doc:t:i:namespaces  KEYS[8] cs:doc:t:expiring
-- ARGV[1] namespace  ARGV[2] install  ARGV[3] for how many ms the feed stays
-- Reply: 1 | 0 there are documents
-- What a crash had left in the counts, a recount takes from the tenant's.
if redis.call('ZCARD', KEYS[2]) > 0 then
  return 0
end
local ns = ARGV[1]
redis.call('DEL', KEYS[5], KEYS[1], KEYS[3])
redis.call('ZREM', KEYS[8], ARGV[2] .. '/' .. ns)
redis.call('HDEL', KEYS[6], ns .. ':r', ns .. ':b', ns .. ':w', ns .. ':wr', ns .. ':wb')
redis.call('SREM', KEYS[7], ns)
redis.call('PEXPIRE', KEYS[4], ARGV[3])
return 1
