-- Takes back an activation that was started and never ran, if its record is
-- still the one that was written.
-- KEYS[1] cs:act:t:id:meta
-- KEYS[2] cs:act:t:ns:fn:index
-- ARGV[1] the record as it was written
-- ARGV[2] the activation's id
-- Reply: 1 removed | 0 there is none, or another
-- An entry left in the index by a cut goes with the sweeper.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[2])
return 1
