-- Changes the configuration of a queue, where it still is what the caller has read.
-- KEYS[1] cs:queue:t:ns:q:config
-- ARGV[1] how many fields must be what they were; ARGV[2…] each with its value, '' for none
-- behind them: each field to be set with its value
-- Reply: 'ok' | 'changed'
local n = tonumber(ARGV[1])
for i = 1, n do
  if (redis.call('HGET', KEYS[1], ARGV[2 * i]) or '') ~= ARGV[2 * i + 1] then
    return 'changed'
  end
end
if #ARGV > 2 * n + 1 then
  redis.call('HSET', KEYS[1], unpack(ARGV, 2 * n + 2))
end
return 'ok'
