-- Torch7 on the CPU: nn's modules in a Sequential, all parameters in one vector, sgd written as optim has it.

local ffi = require("ffi")
local BaseAdapter = require("lua.base_adapter")
local failures = require("lua.failures")
local system = require("lua.system")

ffi.cdef([[
int openblas_get_num_threads(void);
int openblas_get_parallel(void);
void openblas_set_num_threads(int threads);
const char *openblas_get_config(void);
const char *openblas_get_corename(void);
]])

local WITH_THREADS_OF_ITS_OWN = 1 -- openblas_get_parallel(): pthreads

local function window(a)
  return a.kernel_w, a.kernel_h, a.stride_w, a.stride_h, a.padding_w, a.padding_h
end

-- Functions of (node, shape of its input) that make a module.
local LAYERS = {
  dense = function(node, inputs)
    return nn.Linear(inputs[2], node.attributes.units, node.attributes.bias ~= 0)
  end,
  conv2d = function(node, inputs)
    local module = nn.SpatialConvolution(inputs[2], node.attributes.channels, window(node.attributes))
    return node.attributes.bias ~= 0 and module or module:noBias()
  end,
  max_pool2d = function(node)
    return nn.SpatialMaxPooling(window(node.attributes))
  end,
  avg_pool2d = function(node) -- padded zeros count in the average
    return nn.SpatialAveragePooling(window(node.attributes))
  end,
  flatten = function(node)
    return nn.View(-1, node.shape[2])
  end,
  relu = function()
    return nn.ReLU()
  end,
  tanh = function()
    return nn.Tanh()
  end,
  sigmoid = function()
    return nn.Sigmoid()
  end,
}

-- Functions of the job that make a criterion, its target, and what fills that in. Torch counts classes from 1.
local LOSSES = {
  softmax_cross_entropy = function()
    local target = torch.LongTensor()
    return nn.CrossEntropyCriterion(), target, function(labels)
      target:add(labels, 1)
    end
  end,
  squared_error = function(job)
    local target = torch.FloatTensor(job.batch_size, job.classes)
    return nn.MSECriterion(), target, function(labels)
      target:zero():scatter(2, torch.add(labels, 1):view(-1, 1), 1)
    end
  end,
}

local Adapter = BaseAdapter.extend()
Adapter.parts = { "forward", "loss", "backward", "update" }
Adapter.layers = BaseAdapter.kinds(LAYERS, LOSSES)
Adapter.limits = {
  conv2d = {
    groups = 1,
    dilation_h = 1,
    dilation_w = 1,
    padding_end_h = "padding_h",
    padding_end_w = "padding_w",
  },
}

-- Loads torch and nn, and applies the number of threads.
function Adapter:load(settings)
  require("torch")
  require("nn")
  torch.setdefaulttensortype("torch.FloatTensor")
  self.version, self.library = "7", "Torch7 on " .. jit.version
  local blas = system.mapped_files("openblas")[1]
  self._openblas = blas and ffi.load(blas)
  if settings.threads then
    torch.setnumthreads(tonumber(settings.threads))
    -- Torch gives its threads one image each: a product with threads of its own would make n times n.
    if self._openblas and self._openblas.openblas_get_parallel() == WITH_THREADS_OF_ITS_OWN then
      self._openblas.openblas_set_num_threads(1)
    end
  end
end

-- OpenMP's threads; those inside OpenBLAS are a fact.
function Adapter:read_settings()
  return { threads = { torch.getnumthreads(), "torch.getnumthreads()" } }
end

-- The BLAS, by its own account.
function Adapter:facts()
  local found, blas = { ["lua.version"] = jit.version }, self._openblas
  if blas then
    found["blas.version"] = ffi.string(blas.openblas_get_config())
    found["blas.kernel"] = ffi.string(blas.openblas_get_corename())
    found["blas.threads"] = blas.openblas_get_num_threads()
  end
  return found
end

local function sizes(shape)
  return torch.LongStorage(shape)
end

-- A tensor on memory that is not Torch's.
local function tensor_at(kind, pointer, shape)
  local count = 1
  for _, extent in ipairs(shape) do
    count = count * extent
  end
  local address = tonumber(ffi.cast("intptr_t", pointer))
  return torch[kind .. "Tensor"](torch[kind .. "Storage"](count, address), 1, sizes(shape))
end

-- The model, the criterion and the parameters as one vector, on the batch's own memory.
function Adapter:build(job, batch)
  self._job = job
  self._images = tensor_at("Float", batch[job.source], job.inputs[job.source].shape)
  self._labels = tensor_at("Long", batch[job.target], { job.batch_size })
  self._criterion, self._target, self._fill_target = LOSSES[job:node(job.loss).kind](job)
  self._model, self._modules = nn.Sequential(), {}
  local before, shape = job.source, job.inputs[job.source].shape
  for _, node in ipairs(job.nodes) do
    if node.name ~= job.loss then
      if #node.inputs ~= 1 or node.inputs[1] ~= before then
        failures.unsupported("this adapter of Torch7 drives chains only; '" .. node.name .. "' is in none")
      end
      self._modules[node.name] = LAYERS[node.kind](node, shape)
      self._model:add(self._modules[node.name])
      before, shape = node.name, node.shape
    end
  end
  self._flat, self._flat_gradient = self._model:getParameters()
  self:reset()
end

-- Name -> what `pick` takes from the module of each parameter: its weight, or its bias.
function Adapter:_each(pick)
  local found = {}
  for _, node in ipairs(self._job.nodes) do
    for _, parameter in ipairs(node.parameters) do
      local is_bias = parameter.name == node.name .. ".bias"
      found[parameter.name] = pick(self._modules[node.name], is_bias)
    end
  end
  return found
end

local function exported(tensor)
  tensor = tensor:contiguous()
  return { data = tensor:data(), shape = tensor:size():totable(), _keeps = tensor }
end

-- Initial weights, empty optimizer.
function Adapter:reset()
  local tensors = self:_each(function(module, is_bias)
    return is_bias and module.bias or module.weight
  end)
  for name, tensor in pairs(tensors) do
    ffi.copy(tensor:data(), self._job.parameters[name].data, tensor:nElement() * 4)
  end
  self._velocity = self._flat:clone():zero()
  if self._job.task == "forward" then
    self._model:evaluate()
  else
    self._model:training()
  end
end

-- One training step; the mean loss of the batch before the update.
function Adapter:step()
  local loss = self:gradient()
  self:update_part()
  return loss
end

-- The same without update; gradients stay in the modules.
function Adapter:gradient()
  self:forward_part()
  local loss = self:loss_part()
  self:backward_part()
  return loss
end

-- Parts of a training step: up to the prediction.
function Adapter:forward_part()
  self._flat_gradient:zero()
  self._prediction = self._model:forward(self._images)
end

-- The mean loss.
function Adapter:loss_part()
  self._fill_target(self._labels)
  return self._criterion:forward(self._prediction, self._target)
end

-- All gradients.
function Adapter:backward_part()
  self._model:backward(self._images, self._criterion:backward(self._prediction, self._target))
end

-- The optimizer; it works in the gradients' own memory.
function Adapter:update_part()
  local optimizer, update = self._job.optimizer, self._flat_gradient
  if optimizer.weight_decay ~= 0 then
    update:add(optimizer.weight_decay, self._flat)
  end
  if optimizer.momentum ~= 0 then
    update = self._velocity:mul(optimizer.momentum):add(update)
  end
  self._flat:add(-optimizer.learning_rate, update)
end

-- Inference; the prediction (N x classes).
function Adapter:forward()
  return self._model:forward(self._images)
end

-- Inference between training steps.
function Adapter:evaluate()
  return self:prediction(self:forward())
end

-- A tensor's numbers, which stay until the next call.
function Adapter:prediction(result)
  self._evaluated = result:contiguous()
  return self._evaluated:data()
end

-- Name -> tensor.
function Adapter:parameters()
  return self:_each(function(module, is_bias)
    return exported(is_bias and module.bias or module.weight)
  end)
end

-- Of the last gradient(); a step turns them into updates.
function Adapter:gradients()
  return self:_each(function(module, is_bias)
    return exported(is_bias and module.gradBias or module.gradWeight)
  end)
end

-- Of every layer, on the current batch.
function Adapter:activations()
  self:forward()
  local found = {}
  for name, module in pairs(self._modules) do
    found[name] = exported(module.output)
  end
  return found
end

-- The momentum's vector, cut as the parameters' is.
function Adapter:states()
  local found = {}
  local parameters = self:_each(function(module, is_bias)
    return is_bias and module.bias or module.weight
  end)
  for name, parameter in pairs(parameters) do
    local storage, offset = self._velocity:storage(), parameter:storageOffset()
    found[name .. ".velocity"] = exported(torch.FloatTensor(storage, offset, parameter:size()))
  end
  return found
end

return Adapter
