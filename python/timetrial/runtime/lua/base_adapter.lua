-- Defaults of an adapter in Lua. The shape is that of frameworks/README.md, with pointers for arrays:
-- build(job, batch) gets a pointer for each input, name -> float * or int64_t *; evaluate() returns float *
-- (N x classes) that stays until the next call, and parameters(), gradients(), activations(), states()
-- return name -> {data = float *, shape = {...}}.

local BaseAdapter = {
  tasks = { "train", "gradient", "forward" },
  devices = { "cpu" },
  dtypes = { "f32" },
  optimizers = { "sgd" },
  layers = {}, -- kinds of layers and losses: BaseAdapter.kinds() of the adapter's own tables
  -- What a kind cannot be asked for: kind -> attribute -> the one value it may have, or the name of the
  -- attribute that it must be like.
  limits = {},
  parts = {}, -- or "forward", "loss", "backward", "update", with forward_part() and so on
  version = "",
  library = "",
}
BaseAdapter.__index = BaseAdapter

local METHODS = {
  parameter = "parameters",
  gradient = "gradients",
  activation = "activations",
  optimizer = "states",
}

-- A new adapter with these defaults.
function BaseAdapter.extend()
  return setmetatable({}, BaseAdapter)
end

-- The keys of tables, in order: what an adapter has is what its tables can make.
function BaseAdapter.kinds(...)
  local found = {}
  for _, makers in ipairs({ ... }) do
    for kind in pairs(makers) do
      found[#found + 1] = kind
    end
  end
  table.sort(found)
  return found
end

-- name -> {value in force or nil, how it was read}.
function BaseAdapter:read_settings()
  return {}
end

-- name -> word: what the record should know and no setting asks for.
function BaseAdapter:facts()
  return {}
end

-- For asynchronous frameworks: returns when everything asked so far is computed.
function BaseAdapter:wait() end

-- What forward() returned, as float * (N x classes).
function BaseAdapter:prediction(result)
  return result
end

-- Name -> tensor, by one method per role.
function BaseAdapter:tensors(role)
  local method = METHODS[role] and self[METHODS[role]]
  return method and method(self) or {}
end

return BaseAdapter
