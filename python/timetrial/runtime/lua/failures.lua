-- How a contender gives up: an outcome and words.

local failures = {}
local FAILURE = {
  __tostring = function(failure)
    return failure.text
  end,
}

-- Ends the launch with an outcome of processes/PROTOCOL.md.
function failures.fail(outcome, text)
  error(setmetatable({ outcome = outcome, text = text }, FAILURE), 0)
end

-- The framework, or its adapter, does not have what was asked: a row `unavailable`.
function failures.unsupported(text)
  failures.fail("unavailable", text)
end

-- Outcome and text of anything that was caught.
function failures.describe(problem)
  if getmetatable(problem) == FAILURE then
    return problem.outcome, problem.text
  end
  local text = tostring(problem)
  local outcome = "crash"
  if text:lower():find("not enough memory", 1, true) or text:lower():find("out of memory", 1, true) then
    outcome = "oom"
  elseif text:find("module '[^']*' not found") then
    outcome = "unavailable"
    text = text:match("module '[^']*' not found")
  end
  return outcome, text
end

return failures
