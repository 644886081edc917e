-- The job file, read. processes/PROTOCOL.md explains every key.

local failures = require("lua.failures")
local json = require("lua.json")
local npy = require("lua.npy")

local Job = {}
local PROTOCOL = 2
local KEPT = { "task", "device", "dtype", "batch_size", "settings", "optimizer", "streams", "runtime" }
Job.__index = Job

local function same(one, other)
  return npy.shape_text(one) == npy.shape_text(other)
end

-- The name of the input that layers read. Adapters in Lua take one.
local function single_source(job)
  local known, sources = {}, {}
  for _, node in ipairs(job.nodes) do
    for _, name in ipairs(node.name == job.loss and {} or node.inputs) do
      if job.inputs[name] and not known[name] then
        known[name], sources[#sources + 1] = true, name
      end
    end
  end
  if #sources > 1 then
    failures.unsupported("the backend takes one input; the network has: " .. table.concat(sources, ", "))
  end
  return sources[1]
end

-- What an adapter is asked to build.
--
-- inputs: what every batch brings, in order, each also by its name: name, dtype ("f32", "i64"), role, shape (N
-- first). nodes: layers in topological order: name, kind, inputs, attributes, shape and parameters, a list of
-- {name, shape}. output, loss: the names of two of them. source, target: the names of the input that layers
-- read, and of the one that the loss compares with.
-- parameters: initial values, name -> {data = const float *, shape}; they are mapped read-only.
function Job.read(path)
  local file = assert(io.open(path))
  local table = json.decode(file:read("*a"))
  file:close()
  if table.protocol ~= PROTOCOL then
    local words = "%s: protocol %s, expected %d"
    failures.fail("crash", words:format(path, tostring(table.protocol), PROTOCOL))
  end
  local job = setmetatable({}, Job)
  for _, key in ipairs(KEPT) do
    job[key] = table[key]
  end
  job.flush_to_zero, job.settings.flush_to_zero = job.settings.flush_to_zero, nil -- nothing for an adapter
  job.name, job.user_path = table.backend.name, table.backend.path
  job.output, job.loss = table.network.output, table.network.loss
  job.nodes, job.inputs, job.parameters = {}, {}, {}
  for _, node in ipairs(table.network.nodes) do
    if node.kind == "input" then
      job.inputs[#job.inputs + 1], job.inputs[node.name] = node, node
    else
      job.nodes[#job.nodes + 1] = node
    end
  end
  job.target = job:node(job.loss).inputs[2]
  job.source = single_source(job)
  local output = job:node(job.output)
  job.classes = output.shape[#output.shape]
  return job
end

-- The layer of this name.
function Job:node(name)
  for _, node in ipairs(self.nodes) do
    if node.name == name then
      return node
    end
  end
  failures.fail("crash", "the job has no node '" .. name .. "'")
end

-- Maps the initial values; checks their shapes.
function Job:read_parameters()
  for _, node in ipairs(self.nodes) do
    for _, parameter in ipairs(node.parameters) do
      local values = npy.map(parameter.file)
      if values.dtype ~= "<f4" or not same(values.shape, parameter.shape) then
        failures.fail(
          "crash",
          ("%s: %s %s, expected <f4 %s"):format(
            parameter.file, values.dtype, npy.shape_text(values.shape), npy.shape_text(parameter.shape)
          )
        )
      end
      self.parameters[parameter.name] = values
    end
  end
end

return Job
