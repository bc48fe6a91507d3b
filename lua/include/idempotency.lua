-- Under an idempotency key an enqueue stores the digest of its request, then for each
-- job a space and the id that holds the job's unique key, or nothing.

-- earlier_reply returns the reply to the request that was stored with that answer, an
-- error if that was another request.
local function earlier_reply(stored, digest)
  if string.match(stored, '^%S+') ~= digest then
    return redis.error_reply('CS_VALIDATION_IDEMPOTENCY_MISMATCH the Idempotency-Key was used with another request')
  end
  local reply = {'again'}
  for holder in string.gmatch(stored, ' ([^ ]*)') do
    reply[#reply + 1] = holder
  end
  return reply
end

-- format_answer returns the text that is stored for a reply {'new', holder, …}.
local function format_answer(digest, reply)
  return digest .. ' ' .. table.concat(reply, ' ', 2)
end
