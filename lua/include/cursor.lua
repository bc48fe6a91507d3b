-- A queue has a cursor for each priority: the score from which fetches read its
-- pending jobs. A job that is entered below the cursor would not be found.

-- at_least_cursor returns the score of a pending job, raised to its priority's cursor
-- where that is higher. Both are decimal strings; cursor is false if there is none.
local function at_least_cursor(score, cursor)
  if cursor and tonumber(cursor) > tonumber(score) then
    return cursor
  end
  return score
end
