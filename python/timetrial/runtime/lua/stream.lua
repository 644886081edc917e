-- A data set in a given order: batches that are gathered into the contender's images and labels.

local ffi = require("ffi")
local failures = require("lua.failures")
local npy = require("lua.npy")

local Stream = {}
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
function Stream.open(files, job, images, labels, library)
  local stream = setmetatable({ next = 0, _job = job, _library = library }, Stream)
  stream._to_images, stream._to_labels = images, labels
  local shape = { false, unpack(job.image_shape, 2) }
  local from_images = map(files.images, "<f4", shape)
  stream.samples = from_images.shape[1]
  stream._images = from_images.data
  stream._labels = map(files.labels, "<i8", { stream.samples }).data
  stream._row_bytes = npy.count({ unpack(job.image_shape, 2) }) * 4
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
  check_range(stream._labels, stream.samples, job.classes, files.labels, "label")
  check_range(stream._order, stream.batches * size, stream.samples, files.order or files.images, "index")
  return stream
end

-- Fills images and labels with the current batch and does not advance.
function Stream:fill()
  local size = self._job.batch_size
  local row = self._order + self.next * size
  self._library.tt_gather(self._to_images, self._images, self._row_bytes, row, size)
  self._library.tt_gather(self._to_labels, self._labels, 8, row, size)
end

-- The next batch; after the last one the first.
function Stream:advance()
  self.next = self.next + 1 == self.batches and 0 or self.next + 1
end

return Stream
