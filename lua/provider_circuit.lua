-- Changes the circuit of a provider of models, which keeps calls away from a provider that fails.
-- KEYS[1] cs:ai:t:circuits
-- KEYS[2] cs:ai:t:providers
-- ARGV[1] fail, probe, release or close
-- ARGV[2] the provider's name
-- ARGV[3] now in ms
-- ARGV[4] when the call began in ms; of release, until when the probe had the circuit
-- ARGV[5] for how long a failure opens the circuit, in ms; 0: by the number of failures in a row
-- ARGV[6] the number of failures in a row that opens it
-- ARGV[7] the shortest and ARGV[8] the longest time by the number of failures, in ms
-- ARGV[9] how long a probe may take in ms
-- Reply: {1 if the caller's change was made, until, opened, failures}
-- A field holds 'until opened failures'. From until on, one call at a time may probe the provider. A
-- call that began before the circuit was opened neither opens it again nor closes it. A repeat of a
-- lost fail counts twice, which prolongs the wait. A provider that does not exist has no circuit: a call
-- may end after it was deleted. A probe that ended without a result releases the circuit for another.
-- include integer.lua
local circuits_key, records_key = KEYS[1], KEYS[2]
local op, name, now, began, delay, threshold, shortest, longest, probe_ms = unpack(ARGV)
now, began, delay, threshold = tonumber(now), tonumber(began), tonumber(delay), tonumber(threshold)

if not redis.call('HGET', records_key, name) then
  return {0, 0, 0, 0}
end
local stored = redis.call('HGET', circuits_key, name)
local until_ms, opened, failures = string.match(stored or '0 0 0', '^(%d+) (%d+) (%d+)$')
until_ms, opened, failures = tonumber(until_ms), tonumber(opened), tonumber(failures)

local changed = 0
if op == 'fail' then
  if began < opened then
    until_ms = math.max(until_ms, delay > 0 and now + delay or 0)
  else
    failures = failures + 1
    if delay == 0 and failures >= threshold then
      delay = math.min(tonumber(longest), tonumber(shortest) * 2 ^ math.min(failures - threshold, 20))
    end
    if delay > 0 then
      until_ms, opened = now + delay, now
    end
  end
  changed = 1
elseif op == 'probe' and stored and until_ms <= now then
  until_ms = now + tonumber(probe_ms)
  changed = 1
elseif op == 'release' and stored and until_ms == began then
  until_ms = now
  changed = 1
elseif op == 'close' and stored and began >= opened then
  redis.call('HDEL', circuits_key, name)
  return {1, 0, 0, 0}
end
if changed == 1 then
  redis.call('HSET', circuits_key, name, integer(until_ms) .. ' ' .. integer(opened) .. ' ' .. integer(failures))
end
return {changed, integer(until_ms), integer(opened), integer(failures)}
