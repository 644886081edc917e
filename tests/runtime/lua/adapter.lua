-- A framework in plain Lua: dense layers and relu, trained by sgd. `FAIL` in the environment of a
-- launch makes it fail: "step", "module".

local ffi = require("ffi")
local BaseAdapter = require("lua.base_adapter")

-- A row of outputs from one of inputs.
local function dense(layer, row, out)
  for j = 0, layer.n_out - 1 do
    local sum = layer.bias and layer.bias.data[j] or 0
    for k = 0, layer.n_in - 1 do
      sum = sum + layer.weight.data[j * layer.n_in + k] * row[k]
    end
    out[j] = sum
  end
end

-- The same for derivatives: those of the inputs, and of the parameters.
local function dense_backward(layer, deltas, row, into)
  for j = 0, layer.n_out - 1 do
    local delta = deltas[j]
    layer.bias.gradient[j] = layer.bias.gradient[j] + delta
    for k = 0, layer.n_in - 1 do
      local at = j * layer.n_in + k
      layer.weight.gradient[at] = layer.weight.gradient[at] + delta * row[k]
      into[k] = into[k] + delta * layer.weight.data[at]
    end
  end
end

local function relu(layer, row, out)
  for j = 0, layer.n_out - 1 do
    out[j] = math.max(row[j], 0)
  end
end

local function relu_backward(layer, deltas, row, into)
  for j = 0, layer.n_out - 1 do
    into[j] = row[j] > 0 and deltas[j] or 0
  end
end

local LAYERS = {
  dense = { forward = dense, backward = dense_backward },
  relu = { forward = relu, backward = relu_backward },
  flatten = {}, -- its values lie as they are
}

local LOSSES = {
  -- Of one row, before the mean; the derivative of the mean of n by the prediction goes to `deltas`.
  softmax_cross_entropy = function(row, label, classes, deltas, n)
    local sum = 0
    for j = 0, classes - 1 do
      sum = sum + math.exp(row[j])
    end
    for j = 0, classes - 1 do
      deltas[j] = (math.exp(row[j]) / sum - (j == label and 1 or 0)) / n
    end
    return math.log(sum) - row[label]
  end,
}

local Adapter = BaseAdapter.extend()
Adapter.parts = { "forward", "loss", "backward", "update" }
Adapter.layers = BaseAdapter.kinds(LAYERS, LOSSES)

function Adapter:load()
  if os.getenv("FAIL") == "module" then
    require("a_framework_that_is_not_there")
  end
  self.version, self.library = "1", "plain Lua"
end

function Adapter:read_settings()
  return { threads = { 1, "it has no others" } }
end

function Adapter:facts()
  return { ["lua.version"] = jit.version }
end

local function width(shape)
  local count = 1
  for i = 2, #shape do
    count = count * shape[i]
  end
  return count
end

function Adapter:build(job, batch)
  self._job, self._labels, self._n = job, batch.labels, job.batch_size
  self._layers, self._values, self._named = {}, {}, {}
  local shape, values = job.inputs.images.shape, batch.images
  for _, node in ipairs(job.nodes) do
    if node.name ~= job.loss and LAYERS[node.kind].forward then
      local layer = { node = node, inputs = values, n_in = width(shape), n_out = width(node.shape) }
      layer.outputs = ffi.new("float[?]", self._n * layer.n_out)
      layer.deltas = ffi.new("float[?]", self._n * layer.n_in)
      for _, parameter in ipairs(node.parameters) do
        local count = width({ 1, unpack(parameter.shape) })
        local tensor = { count = count, shape = parameter.shape }
        tensor.data, tensor.gradient = ffi.new("float[?]", count), ffi.new("float[?]", count)
        tensor.velocity = ffi.new("float[?]", count)
        self._named[parameter.name] = tensor
        layer[parameter.name == node.name .. ".bias" and "bias" or "weight"] = tensor
      end
      self._layers[#self._layers + 1] = layer
      values = layer.outputs
    end
    shape = node.name ~= job.loss and node.shape or shape
  end
  self._loss = LOSSES[job:node(job.loss).kind]
  self:reset()
end

function Adapter:reset()
  for name, tensor in pairs(self._named) do
    ffi.copy(tensor.data, self._job.parameters[name].data, tensor.count * 4)
    ffi.fill(tensor.velocity, tensor.count * 4)
  end
end

function Adapter:evaluate()
  for _, layer in ipairs(self._layers) do
    for i = 0, self._n - 1 do
      local forward = LAYERS[layer.node.kind].forward
      forward(layer, layer.inputs + i * layer.n_in, layer.outputs + i * layer.n_out)
    end
  end
  return self._layers[#self._layers].outputs
end

function Adapter:forward()
  return self:evaluate()
end

function Adapter:_backward(layer, deltas)
  local backward = LAYERS[layer.node.kind].backward
  ffi.fill(layer.deltas, self._n * layer.n_in * 4)
  for i = 0, self._n - 1 do
    local row, into = layer.inputs + i * layer.n_in, layer.deltas + i * layer.n_in
    backward(layer, deltas + i * layer.n_out, row, into)
  end
end

function Adapter:forward_part()
  for _, tensor in pairs(self._named) do
    ffi.fill(tensor.gradient, tensor.count * 4)
  end
  self:evaluate()
end

function Adapter:loss_part()
  local loss, n, classes = 0, self._n, self._job.classes
  local prediction = self._layers[#self._layers].outputs
  self._deltas = ffi.new("float[?]", n * classes)
  for i = 0, n - 1 do
    local label, at = tonumber(self._labels[i]), i * classes
    loss = loss + self._loss(prediction + at, label, classes, self._deltas + at, n)
  end
  return loss / n
end

function Adapter:backward_part()
  local deltas = self._deltas
  for i = #self._layers, 1, -1 do
    self:_backward(self._layers[i], deltas)
    deltas = self._layers[i].deltas
  end
end

function Adapter:gradient()
  self:forward_part()
  local loss = self:loss_part()
  self:backward_part()
  return loss
end

function Adapter:step()
  if os.getenv("FAIL") == "step" then
    error("the step fails")
  end
  local loss = self:gradient()
  self:update_part()
  return loss
end

function Adapter:update_part()
  local sgd = self._job.optimizer
  for _, tensor in pairs(self._named) do
    for i = 0, tensor.count - 1 do
      local slope = tensor.gradient[i] + sgd.weight_decay * tensor.data[i]
      tensor.velocity[i] = sgd.momentum * tensor.velocity[i] + slope
      tensor.data[i] = tensor.data[i] - sgd.learning_rate * tensor.velocity[i]
    end
  end
end

function Adapter:_tensors(key, ending)
  local found = {}
  for name, tensor in pairs(self._named) do
    found[name .. ending] = { data = tensor[key], shape = tensor.shape }
  end
  return found
end

function Adapter:parameters()
  return self:_tensors("data", "")
end

function Adapter:gradients()
  return self:_tensors("gradient", "")
end

function Adapter:states()
  return self:_tensors("velocity", ".velocity")
end

return Adapter
