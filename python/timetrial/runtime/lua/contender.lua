-- One framework, one network, and what can be asked of them: the same as runtime/contender.py, for Lua.
-- Commands are methods; each returns the fields of its `done`.

local ffi = require("ffi")
local failures = require("lua.failures")
local json = require("lua.json")
local npy = require("lua.npy")
local Score = require("lua.score")
local Stream = require("lua.stream")
local system = require("lua.system")

-- Boundaries of timetrial/recorder.h.
local SEGMENT, STEP, DATA, RESET = 0, 1, 2, 6
local ENDS = { forward = 3, loss = 4, backward = 5, update = STEP }
local FLOAT_MODES = { [0] = "off", "results", "operands", "on" } -- of timetrial/float_mode.h
local TYPES = { f32 = { "float *", 4 }, i64 = { "int64_t *", 8 } } -- of a tensor, and bytes of an element
local LINE = 64 -- bytes: a cache line and the widest vector

local Contender = {}
Contender.__index = Contender

-- Memory that begins at a multiple of a cache line: a pointer, and what keeps it.
local function aligned(type, count, bytes)
  local block = ffi.new("uint8_t[?]", count * bytes + LINE)
  local address = tonumber(ffi.cast("uintptr_t", block))
  return ffi.cast(type, block + -address % LINE), block
end

function Contender.new(job, adapter, library, recorder_fd)
  local self = setmetatable({ _job = job, _adapter = adapter, _library = library }, Contender)
  self._batch, self._memory = {}, {}
  for i, input in ipairs(job.inputs) do
    local type, bytes = unpack(TYPES[input.dtype])
    self._batch[input.name], self._memory[i] = aligned(type, npy.count(input.shape), bytes)
  end
  self._streams, self._current = {}, "train"
  self._pass_steps, self._pass_done = 0, 0 -- steps of a pass (0: none ends), and since the last reset
  local recorder = ffi.new("tt_recorder *[1]")
  local problem = library.tt_recorder_open(recorder, recorder_fd, 0)
  if problem ~= 0 then
    failures.fail("crash", "the recorder cannot be opened: errno " .. problem)
  end
  self._recorder = recorder[0]
  self:_make_parts()
  return self
end

-- Task, device, dtype, layers and optimizer, before anything is built.
function Contender:check_wants()
  local job = self._job
  local wants = {
    { "task", job.task, "tasks" },
    { "device", job.device, "devices" },
    { "dtype", job.dtype, "dtypes" },
  }
  for _, node in ipairs(job.nodes) do
    wants[#wants + 1] = { "layer", node.kind, "layers" }
  end
  if job.task == "train" then
    wants[#wants + 1] = { "optimizer", job.optimizer.name, "optimizers" }
  end
  for _, want in ipairs(wants) do
    local what, word, has = want[1], want[2], self._adapter[want[3]]
    if not (" " .. table.concat(has, " ") .. " "):find(" " .. word .. " ", 1, true) then
      local words = "the backend has no %s '%s'; it has: %s"
      failures.unsupported(words:format(what, word, table.concat(has, ", ")))
    end
  end
  for _, node in ipairs(job.nodes) do
    self:check_limits(node)
  end
end

-- Unsupported where a layer asks for what the adapter says its kind cannot be asked for.
function Contender:check_limits(node)
  local attributes = node.attributes
  for attribute, only in pairs(self._adapter.limits[node.kind] or {}) do
    local value, like = attributes[attribute], attributes[only] and "as " .. only or only
    if value ~= (attributes[only] or only) then
      local words = "the backend has no %s with %s %s ('%s'); it has: %s %s"
      failures.unsupported(words:format(node.kind, attribute, value, node.name, attribute, like))
    end
  end
end

-- The network with its initial weights on the batch's own memory.
function Contender:build()
  self._job:read_parameters()
  self:_stream("train"):fill()
  self._adapter:build(self._job, self._batch)
end

-- The fields of the event `ready` that the adapter knows.
function Contender:describe()
  local adapter, settings, facts = self._adapter, {}, {}
  for name, reading in pairs(adapter:read_settings()) do
    local value = reading[1]
    settings[name] = { effective = value == nil and json.null or tostring(value), how_read = reading[2] }
  end
  local mode = FLOAT_MODES[self._library.tt_float_mode()]
  settings.flush_to_zero = { effective = mode, how_read = "MXCSR of the thread that runs the steps" }
  for name, word in pairs(adapter:facts()) do
    facts[name] = tostring(word)
  end
  local backend = { name = self._job.name, version = adapter.version, library = adapter.library }
  backend.isa, backend.flags, backend.parts = "", json.list(), json.list(adapter.parts)
  return { settings = settings, facts = facts, backend = backend }
end

-- A segment of steps; the loop is C, as for every contender.
function Contender:run(steps, max_ns, window)
  return self:_segment(self._fused, steps, max_ns, window)
end

-- The same with a stamp after each part.
function Contender:parts(steps, max_ns, window)
  return self:_segment(self._separate, steps, max_ns, window)
end

-- The next steps use this stream, from its first batch.
function Contender:stream(name)
  self:_stream(name).next = 0
  self._current, self._pass_done = name, 0
  return {}
end

-- Initial weights, empty optimizer, first batch.
function Contender:reset()
  self._adapter:reset()
  self._adapter:wait()
  self:_stream(self._current).next = 0
  self._pass_done = 0
  return {}
end

-- From here on every so many steps are one pass, and before the next one comes a reset; 0: none ends any more.
function Contender:passes(steps)
  self._pass_steps = tonumber(steps)
  return {}
end

-- One step without update on the current batch.
function Contender:gradient()
  self:_stream(self._current):fill()
  local loss = self._adapter:gradient()
  self._adapter:wait()
  return { loss = loss - loss == 0 and loss or json.null }
end

-- The prediction for the first batch of the current stream, as a file.
function Contender:outputs(path)
  local stream = self:_stream(self._current)
  local place = stream.next
  stream.next = 0
  stream:fill()
  stream.next = place
  npy.save(path, self._adapter:evaluate(), { self._job.batch_size, self._job.classes })
  return {}
end

-- What the last step of the task forward returned, as a file: of the timed call, not of another.
function Contender:predicted(path)
  if self._predicted == nil then
    failures.fail("crash", "forward() returned nil; expected the prediction (N x classes)")
  end
  self._adapter:wait()
  npy.save(path, self._adapter:prediction(self._predicted), { self._job.batch_size, self._job.classes })
  return {}
end

-- Accuracy and loss over the test stream; every prediction as a file.
function Contender:evaluate(path)
  local job, stream = self._job, self:_stream("test")
  local all = ffi.new("float[?]", stream.samples * job.classes)
  local score = Score.new(job:node(job.loss).kind)
  for batch = 0, stream.batches - 1 do
    stream.next = batch
    stream:fill()
    -- The last batch is filled up with samples that were scored already.
    local count = math.min(job.batch_size, stream.samples - score.samples)
    local predictions = self._adapter:evaluate()
    ffi.copy(all + score.samples * job.classes, predictions, count * job.classes * ffi.sizeof("float"))
    score:add(predictions, self._batch[job.target], count, job.classes)
  end
  npy.save(path, all, { stream.samples, job.classes })
  return score:result()
end

local function as_files(tensors, folder)
  system.make_folder(folder)
  local names = json.list()
  for name, tensor in pairs(tensors) do
    npy.save(folder .. "/" .. name .. ".npy", tensor.data, tensor.shape)
    names[#names + 1] = name
  end
  return { tensors = names }
end

-- The samples of a tensor at these places: "0,3,5".
local function rows_of(tensor, places)
  local shape = { unpack(tensor.shape) }
  local values = npy.count(shape) / shape[1]
  local numbers = {}
  for place in places:gmatch("%d+") do
    numbers[#numbers + 1] = tonumber(place)
  end
  shape[1] = #numbers
  local rows = ffi.new("float[?]", #numbers * values)
  for row, place in ipairs(numbers) do
    ffi.copy(rows + (row - 1) * values, tensor.data + place * values, values * ffi.sizeof("float"))
  end
  return { data = rows, shape = shape }
end

-- Every tensor of a role, as files.
function Contender:dump(role, folder)
  return as_files(self._adapter:tensors(role), folder)
end

-- What the layers make of the batch that comes next, as files: the samples at these places, or "all".
function Contender:show(places, folder)
  self:_stream(self._current):fill()
  local shown = self._adapter:tensors("activation")
  if places ~= "all" then
    for name, tensor in pairs(shown) do
      shown[name] = rows_of(tensor, places)
    end
  end
  return as_files(shown, folder)
end

function Contender:_stream(name)
  if not self._streams[name] then
    local files = self._job.streams[name]
    if not files then
      failures.fail("crash", "the job has no stream '" .. name .. "'")
    end
    self._streams[name] = Stream.open(files, self._job, self._batch, self._library)
  end
  return self._streams[name]
end

-- A step as C functions. An error must not cross the C loop: it ends the segment and is raised behind it.
function Contender:_make_parts()
  local adapter = self._adapter
  local function c_function(call)
    return ffi.cast("int (*)(void *, double *)", function(_, loss)
      local worked, result = xpcall(call, debug.traceback, adapter)
      if not worked then
        self._problem = result
        return 1
      end
      if result then
        loss[0] = result
      end
      return 0
    end)
  end
  local gather = c_function(function()
    local stream = self._streams[self._current]
    stream:fill()
    stream:advance()
  end)
  self._begin_pass = ffi.new("tt_loop_part", { RESET, c_function(function()
    self:reset()
  end) })
  local step = ({ train = adapter.step, gradient = adapter.gradient })[self._job.task]
    or function()
      self._predicted = adapter:forward()
    end
  self._fused = { { SEGMENT, gather }, { STEP, c_function(step) } }
  self._separate = { { DATA, gather } }
  if self._job.task == "train" and #adapter.parts > 0 then
    for _, part in ipairs(adapter.parts) do
      table.insert(self._separate, { ENDS[part], c_function(adapter[part .. "_part"]) })
    end
  else
    table.insert(self._separate, self._fused[2])
  end
end

function Contender:_segment(parts, steps, max_ns, window)
  local segment = ffi.new("tt_segment")
  segment.size = ffi.sizeof("tt_segment")
  segment.window, segment.max_steps, segment.max_ns = tonumber(window), tonumber(steps), tonumber(max_ns)
  segment.stop_at_nan = self._job.task ~= "forward" and 1 or 0
  segment.pass_steps, segment.pass_done, segment.reset = self._pass_steps, self._pass_done, self._begin_pass
  self._problem = nil
  self:_stream(self._current)
  local pieces = ffi.new("tt_loop_part[?]", #parts, parts)
  local cpu_before = system.cpu_ns()
  local problem = self._library.tt_loop_run(self._recorder, pieces, #parts, segment)
  local cpu_ns = system.cpu_ns() - cpu_before - ffi.cast("int64_t", segment.reset_cpu_ns)
  self._pass_done = segment.pass_done
  if self._problem then
    error(self._problem, 0)
  elseif problem ~= 0 then
    failures.fail("crash", "the segment of steps could not run: errno " .. problem)
  end
  return {
    steps = segment.steps,
    stamps = segment.stamps,
    window = segment.window,
    window_bytes = segment.window_bytes,
    cpu_ns = cpu_ns,
    rss_bytes = system.resident_bytes(),
  }
end
-- A compiled call into C must not come back into Lua.
jit.off(Contender._segment)

return Contender
