-- Records a step of a job under the job's lease, unless the step has its final record. A job has a
-- bounded number of steps, with a bounded number of bytes.
-- KEYS[1] cs:job:t:id:run
-- KEYS[2] cs:job:t:id:steps
-- ARGV[1] the epoch of the lease
-- ARGV[2] the field of the step
-- ARGV[3] its record: '1' if it is final, else '0', then JSON
-- ARGV[4] the largest number of steps
-- ARGV[5] the largest number of bytes
-- Reply: 'ok' | 'gone' (no such job) | 'final' | 'steps' | 'bytes' | the job's run, if the epoch does
--   not hold its lease
-- include run.lua
local run_key, steps_key = unpack(KEYS)
local epoch, field, record, most_steps, most_bytes = unpack(ARGV)

local run = redis.call('GET', run_key)
local state, _, held_epoch = parse_run(run)
if not state then
  return 'gone'
end
if state ~= 'active' or held_epoch ~= epoch then
  return run
end
-- The sums are a field of the hash, so that they change together with the record.
local sums, before = unpack(redis.call('HMGET', steps_key, 'sums', field))
if before == record then
  return 'ok'
end
if before and string.sub(before, 1, 1) == '1' then
  return 'final'
end
local count, bytes = string.match(sums or '', '^(%d+) (%d+)$')
count, bytes = tonumber(count or 0), tonumber(bytes or 0)
if before then
  bytes = bytes - #before
else
  count = count + 1
end
bytes = bytes + #record
if count > tonumber(most_steps) then
  return 'steps'
end
if bytes > tonumber(most_bytes) then
  return 'bytes'
end
redis.call('HSET', steps_key, field, record, 'sums', count .. ' ' .. bytes)
return 'ok'
