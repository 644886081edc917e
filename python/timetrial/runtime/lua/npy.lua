-- Arrays in files of NumPy's format: mapped when read, little-endian and in C order.

local ffi = require("ffi")
local system = require("lua.system")

local npy = {}
local TYPES = { ["<f4"] = "const float *", ["<i8"] = "const int64_t *" }
local SIZES = { ["<f4"] = 4, ["<i8"] = 8 }
local ALIGNMENT = 64 -- of the data in a file, as NumPy writes it

local function shape_of(words)
  local shape = {}
  for extent in words:gmatch("%d+") do
    shape[#shape + 1] = tonumber(extent)
  end
  return shape
end

-- The number of elements of a shape.
function npy.count(shape)
  local count = 1
  for _, extent in ipairs(shape) do
    count = count * extent
  end
  return count
end

-- '(64, 10)', as Python writes it.
function npy.shape_text(shape)
  return "(" .. table.concat(shape, ", ") .. (#shape == 1 and ",)" or ")")
end

-- {data = pointer, shape = {...}, dtype = "<f4"} of a file; it stays mapped.
function npy.map(path)
  local start, bytes = system.map_file(path)
  if bytes < 12 or ffi.string(start, 6) ~= "\147NUMPY" then
    error(path .. ": not a .npy file")
  end
  local version = ffi.cast("const uint8_t *", start)[6]
  local long = version > 1
  local length = ffi.cast(long and "const uint32_t *" or "const uint16_t *", start + 8)[0]
  local offset = (long and 12 or 10) + length
  if offset > bytes then
    error(path .. ": its header is cut off")
  end
  local header = ffi.string(start + (long and 12 or 10), length)
  local dtype = header:match("'descr': '([^']*)'")
  local shape = shape_of(header:match("'shape': %(([^)]*)%)") or "")
  if not TYPES[dtype] or not header:find("'fortran_order': False", 1, true) then
    error(path .. ": expected float32 or int64 in C order, found " .. header)
  end
  if offset + npy.count(shape) * SIZES[dtype] > bytes then
    error(path .. ": its data are cut off")
  end
  return { data = ffi.cast(TYPES[dtype], start + offset), shape = shape, dtype = dtype }
end

-- Writes f32 data.
function npy.save(path, data, shape)
  local header = "{'descr': '<f4', 'fortran_order': False, 'shape': " .. npy.shape_text(shape) .. ", }"
  local padding = -(10 + #header + 1) % ALIGNMENT
  header = header .. (" "):rep(padding) .. "\n"
  local file = assert(io.open(path, "wb"))
  local length = string.char(#header % 256, math.floor(#header / 256))
  assert(file:write("\147NUMPY\1\0", length, header, ffi.string(data, npy.count(shape) * 4)))
  assert(file:close())
end

return npy
