-- Removes an activation that was started and never ran, if its record is still the one
-- that was written.
-- KEYS[1] cs:act:t:id:meta
-- KEYS[2] cs:act:t:ns:fn:index
-- ARGV[1] the record as it was written
-- ARGV[2] the activation's id
-- Reply: 1 removed | 0 there is no record, or another
-- The sweeper removes the entry that an interrupted script leaves in the index.
local record_key, index_key = unpack(KEYS)
local record, id = unpack(ARGV)

if redis.call('GET', record_key) ~= record then
  return 0
end
redis.call('DEL', record_key)
redis.call('ZREM', index_key, id)
return 1
