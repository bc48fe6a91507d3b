-- Ends an activation, by compare-and-set on its status and attempt.
-- KEYS[1] cs:act:t:id:meta
-- KEYS[2] cs:act:t:id:result    (only where the result has a key of its own)
-- ARGV[1] the terminal record, whole
-- ARGV[2] the attempt that it ends
-- ARGV[3] time-to-live, ms
-- ARGV[4] the result            (only with KEYS[2])
-- Reply: 1 ended, now or by an earlier try of the same write
--        | the stored record, which another writer has ended or taken over
--        | CS_ACTIVATION_NOT_FOUND
-- Only a terminal record can hold a result, and only a result can be too deeply
-- nested to decode.
local raw = redis.call('GET', KEYS[1])
if not raw then
  return redis.error_reply('CS_ACTIVATION_NOT_FOUND no such activation')
end
if raw == ARGV[1] then
  return 1
end
local decoded, held = pcall(cjson.decode, raw)
if not decoded or (held.status ~= 'running' and held.status ~= 'queued') or held.attempt ~= tonumber(ARGV[2]) then
  return raw
end
if KEYS[2] then
  redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[3])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
