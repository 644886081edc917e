-- A data set in a given order: batches that are gathered into the contender's own.

local ffi = require("ffi")
local failures = require("lua.failures")
local npy = require("lua.npy")

local Stream = {}
local TYPES = { f32 = { "<f4", 4 }, i64 = { "<i8", 8 } } -- of a .npy file, and bytes
Stream.__index = Stream

local function map(path, dtype, shape)
  local array = npy.map(path)
  local fits = array.dtype == dtype and #array.shape == #shape and array.shape[1] > 0
  for i, extent in ipairs(shape) do
    fits = fits and (extent == false or extent == array.shape[i])
  end
  if not fits then
    local wanted = table.concat({ dtype, #shape .. " dimensions" }, ", ")
    failures.fail(
      "crash",
      ("%s: %s %s does not fit the job (%s)"):format(path, array.dtype, npy.shape_text(array.shape), wanted)
    )
  end
  return array
end

local function check_range(array, count, limit, path, what)
  for i = 0, count - 1 do
    if array[i] < 0 or array[i] >= limit then
      local words = "%s: %s %s is not in 0 to %d"
      local value = tostring(array[i]):gsub("LL$", "")
      failures.fail("crash", words:format(path, what, value, limit - 1))
    end
  end
end

-- Without an order the data set's own, the last batch filled up from the beginning.
function Stream.open(files, job, batch, library)
  local stream = setmetatable({ next = 0, samples = false, _job = job, _library = library, _rows = {} }, Stream)
  for i, input in ipairs(job.inputs) do
    local file, type = files.tensors[input.name], TYPES[input.dtype]
    if file == nil then
      failures.fail("crash", "the stream has nothing for the input '" .. input.name .. "'")
    end
    local array = map(file, type[1], { stream.samples, unpack(input.shape, 2) })
    stream.samples = array.shape[1]
    local bytes = npy.count({ unpack(input.shape, 2) }) * type[2]
    stream._rows[i] = { to = batch[input.name], from = array.data, bytes = bytes, array = array }
    if input.name == job.target and input.dtype == "i64" then
      check_range(array.data, stream.samples, job.classes, file, "label")
    end
  end
  local size = job.batch_size
  if files.order then
    local order = map(files.order, "<i8", { false, size })
    stream._order, stream.batches = order.data, order.shape[1]
  else
    stream.batches = math.ceil(stream.samples / size)
    stream._order = ffi.new("int64_t[?]", stream.batches * size)
    for i = 0, stream.batches * size - 1 do
      stream._order[i] = i % stream.samples
    end
  end
  local where = files.order or "the data's own order"
  check_range(stream._order, stream.batches * size, stream.samples, where, "index")
  return stream
end

-- Fills the contender's batch with the current one and does not advance.
function Stream:fill()
  local size = self._job.batch_size
  local row = self._order + self.next * size
  for _, one in ipairs(self._rows) do
    self._library.tt_gather(one.to, one.from, one.bytes, row, size)
  end
end

-- The next batch; after the last one the first.
function Stream:advance()
  self.next = self.next + 1 == self.batches and 0 or self.next + 1
end

return Stream
