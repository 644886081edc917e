-- JSON, as much as the protocol needs. Arrays are tables from json.list(); null is json.null.

local ffi = require("ffi")

local json = { null = setmetatable({}, { __tostring = function() return "null" end }) }
local LIST = {}
local ESCAPES = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

-- Marks a table as an array, so that an empty one is written as such.
function json.list(table)
  return setmetatable(table or {}, LIST)
end

local function fail(text, at, expected)
  error(("JSON, character %d: expected %s, found %q"):format(at, expected, text:sub(at, at + 20)), 0)
end

local function utf8(code)
  if code < 0x80 then
    return string.char(code)
  end
  local bytes = code < 0x800 and 2 or code < 0x10000 and 3 or 4
  local text = ""
  for _ = 2, bytes do
    text = string.char(0x80 + code % 0x40) .. text
    code = math.floor(code / 0x40)
  end
  return string.char(({ [2] = 0xC0, [3] = 0xE0, [4] = 0xF0 })[bytes] + code) .. text
end

local function read_string(text, at)
  local parts, place = {}, at + 1
  while true do
    local stop = text:find('["\\]', place)
    if not stop then
      fail(text, at, "the end of a string")
    end
    parts[#parts + 1] = text:sub(place, stop - 1)
    if text:sub(stop, stop) == '"' then
      return table.concat(parts), stop + 1
    end
    local letter = text:sub(stop + 1, stop + 1)
    place = stop + 2
    if letter == "u" then
      local code = tonumber(text:sub(place, place + 3), 16) or fail(text, place, "four hexadecimal digits")
      place = place + 4
      local low = text:match("^\\u([dD][c-fC-F]%x%x)", place)
      if code >= 0xD800 and code < 0xDC00 and low then
        code = 0x10000 + (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00
        place = place + 6
      end
      parts[#parts + 1] = utf8(code)
    else
      parts[#parts + 1] = ESCAPES[letter] or letter
    end
  end
end

local read_value

local function skip(text, at)
  return text:find("%S", at) or #text + 1
end

-- Members up to `close`; `read_member(at)` reads one and returns the place behind it.
local function read_members(text, at, close, read_member)
  at = skip(text, at + 1)
  if text:sub(at, at) == close then
    return at + 1
  end
  while true do
    at = skip(text, read_member(at))
    local mark = text:sub(at, at)
    if mark == close then
      return at + 1
    elseif mark ~= "," then
      fail(text, at, "',' or '" .. close .. "'")
    end
    at = skip(text, at + 1)
  end
end

local function read_object(text, at)
  local object = {}
  return object, read_members(text, at, "}", function(place)
    if text:sub(place, place) ~= '"' then
      fail(text, place, "a key")
    end
    local key, colon = read_string(text, place)
    colon = skip(text, colon)
    if text:sub(colon, colon) ~= ":" then
      fail(text, colon, "':'")
    end
    local value, behind = read_value(text, skip(text, colon + 1))
    object[key] = value
    return behind
  end)
end

local function read_list(text, at)
  local list = json.list()
  return list, read_members(text, at, "]", function(place)
    local value, behind = read_value(text, place)
    list[#list + 1] = value
    return behind
  end)
end

local WORDS = { ["true"] = true, ["false"] = false, ["null"] = json.null }

read_value = function(text, at)
  local first = text:sub(at, at)
  if first == "{" then
    return read_object(text, at)
  elseif first == "[" then
    return read_list(text, at)
  elseif first == '"' then
    return read_string(text, at)
  end
  local word = text:match("^%a+", at)
  if word and WORDS[word] ~= nil then
    return WORDS[word], at + #word
  end
  local digits = text:match("^[-+%d.eE]+", at)
  local number = digits and tonumber(digits)
  if not number then
    fail(text, at, "a value")
  end
  return number, at + #digits
end

-- The value of a text.
function json.decode(text)
  local value, behind = read_value(text, skip(text, 1))
  if skip(text, behind) <= #text then
    fail(text, skip(text, behind), "the end")
  end
  return value
end

local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(letter)
    return ("\\u%04x"):format(letter:byte())
  end) .. '"'
end

-- A value as text. int64_t keeps all its digits; a number that is not finite is null.
function json.encode(value)
  local kind = type(value)
  if value == json.null or value == nil then
    return "null"
  elseif kind == "string" then
    return quoted(value)
  elseif kind == "boolean" then
    return tostring(value)
  elseif kind == "number" then
    return value - value == 0 and ("%.17g"):format(value) or "null"
  elseif ffi.istype("int64_t", value) or ffi.istype("uint64_t", value) then
    return (tostring(value):gsub("U?LL$", ""))
  elseif kind ~= "table" then
    error("JSON: cannot write a " .. kind)
  end
  local parts = {}
  if getmetatable(value) == LIST then
    for i = 1, #value do
      parts[i] = json.encode(value[i])
    end
    return "[" .. table.concat(parts, ", ") .. "]"
  end
  for key, member in pairs(value) do
    parts[#parts + 1] = quoted(tostring(key)) .. ": " .. json.encode(member)
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ", ") .. "}"
end

return json
