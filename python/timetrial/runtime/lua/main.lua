-- The contender in Lua: reads commands from descriptor 3, answers on 4, stamps into 5; processes/PROTOCOL.md is
-- all that both sides agree on. LuaJIT 2.0 or later.

local system = require("lua.system")
local START_NS = system.now_ns()

local ffi = require("ffi")
local Contender = require("lua.contender")
local failures = require("lua.failures")
local Job = require("lua.job")
local json = require("lua.json")

local COMMANDS_FD, EVENTS_FD, RECORDER_FD = 3, 4, 5

local function send(event)
  system.write_all(EVENTS_FD, json.encode(event) .. "\n")
end

-- A border of a phase, with the memory at that moment.
local function phase(name, ns)
  local resident, mapped = system.resident_bytes()
  return { name = name, ns = ns or system.now_ns(), rss_bytes = resident, mapped_bytes = mapped }
end

-- One command; the fields of its answer.
local function obey(contender, line)
  local command, rest = line:match("^(%S+) ?(.*)$")
  if command == "run" or command == "parts" then
    return contender[command](contender, rest:match("(%d+) (%d+) (%d+)"))
  elseif command == "dump" then
    return contender:dump(rest:match("^(%S+) (.*)$"))
  elseif command == "show" then
    return contender:show(rest:match("^(%S+) (.*)$"))
  elseif
    command == "stream"
    or command == "outputs"
    or command == "predicted"
    or command == "evaluate"
    or command == "passes"
  then
    return contender[command](contender, rest)
  elseif command == "reset" or command == "gradient" then
    return contender[command](contender)
  elseif command == "profile" then
    failures.unsupported("the backend does not time its layers")
  end
  failures.fail("crash", "unknown command '" .. tostring(command) .. "'")
end

-- How this thread treats subnormals: "on", "off", or as it is (nil). Threads that it starts inherit it.
local function apply_float_mode(job, library)
  if job.flush_to_zero then
    library.tt_set_float_mode(job.flush_to_zero == "on" and 3 or 0)
  end
end

-- Everything between start and end. True if the parent said goodbye. `place[1]` is what is under way.
local function serve(job_path, adapter_path, place)
  local phases = json.list({ phase("start", START_NS) })
  local job = Job.read(job_path)
  local library = ffi.load(job.runtime .. "/libtimetrial-c.so")
  apply_float_mode(job, library)
  place[1] = "load"
  local adapter = dofile(adapter_path)
  local contender = Contender.new(job, adapter, library, RECORDER_FD)
  contender:check_wants()
  adapter.mode, adapter.user_path = job.settings.mode, job.user_path
  adapter:load(job.settings)
  phases[2] = phase("import")
  place[1] = "build"
  contender:build()
  apply_float_mode(job, library) -- a library may have changed it
  phases[3] = phase("build")
  place[1] = "settings"
  local ready = contender:describe()
  ready.event, ready.phases = "ready", phases
  send(ready)
  for line in system.line_reader(COMMANDS_FD) do
    place[1] = line:match("^%S*")
    if place[1] == "finish" then
      return true
    end
    local done = obey(contender, line)
    done.event, done.command = "done", place[1]
    send(done)
  end
  return false
end

-- Runs the contender; does not come back.
return function(job_path, adapter_path)
  local place = { "job" }
  local worked, result = xpcall(serve, function(problem)
    io.stderr:write(debug.traceback(tostring(problem), 2), "\n") -- into the launch's stderr.txt
    return problem
  end, job_path, adapter_path, place)
  if not worked then
    local outcome, text = failures.describe(result)
    send({ event = "failed", outcome = outcome, where = place[1], text = text })
    system.exit_now(1)
  end
  if result then
    send({ event = "finished" })
  end
  os.exit(0)
end
