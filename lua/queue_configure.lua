-- Changes the configuration of a queue, if the named fields are as the caller read them.
-- KEYS[1] cs:queue:t:ns:q:config
-- ARGV[1] how many fields are compared
-- ARGV[2…] two for each of them: field, value as it was read, '' for none; then two
--   for each field to be set: field, value
-- Reply: 'ok' | 'changed'
local config_key = KEYS[1]
local first_set = 2 + 2 * tonumber(ARGV[1])

for first = 2, first_set - 1, 2 do
  local field, read = unpack(ARGV, first, first + 1)
  if (redis.call('HGET', config_key, field) or '') ~= read then
    return 'changed'
  end
end
if #ARGV >= first_set then
  redis.call('HSET', config_key, unpack(ARGV, first_set))
end
return 'ok'
