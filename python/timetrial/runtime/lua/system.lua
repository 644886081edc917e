-- The kernel and libtimetrial-c.so, through LuaJIT's FFI.

local ffi = require("ffi")

ffi.cdef([[
typedef struct { long tv_sec; long tv_nsec; } tt_timespec;
int clock_gettime(int clock, tt_timespec *time);
long read(int fd, void *buffer, size_t bytes);
long write(int fd, const void *buffer, size_t bytes);
int open(const char *path, int flags, ...);
int close(int fd);
int64_t lseek(int fd, int64_t offset, int whence);
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, int64_t offset);
int mkdir(const char *path, unsigned int mode);
long sysconf(int name);
void _exit(int status);

typedef struct tt_recorder tt_recorder;
typedef struct {
    uint32_t boundary;
    int (*call)(void *user, double *loss);
    void *user;
} tt_loop_part;
typedef struct {
    uint32_t size;
    uint32_t window;
    uint32_t max_steps;
    uint64_t max_ns;
    uint32_t stop_at_nan;
    uint32_t steps;
    uint32_t stamps;
    uint64_t window_bytes;
    int call_status;
    uint32_t pass_steps;
    uint32_t pass_done;
    const tt_loop_part *reset;
    uint64_t reset_cpu_ns;
} tt_segment;
int tt_recorder_open(tt_recorder **recorder, int fd, uint32_t capacity);
int tt_loop_run(tt_recorder *recorder, const tt_loop_part *parts, uint32_t n_parts, tt_segment *segment);
uint32_t tt_float_mode(void);
void tt_set_float_mode(uint32_t mode);
void tt_gather(void *dst, const void *src, uint64_t row_bytes, const int64_t *indices, uint64_t n);
]])

local C = ffi.C
local INTERRUPTED, EXISTS = 4, 17 -- EINTR, EEXIST
local PAGE_SIZE = tonumber(C.sysconf(30)) -- _SC_PAGESIZE

local system = {}

local function clock_ns(clock)
  local time = ffi.new("tt_timespec")
  C.clock_gettime(clock, time)
  -- An int64_t: a double would lose nanoseconds of a machine that has run for months.
  return time.tv_sec * 1000000000LL + time.tv_nsec
end

-- CLOCK_MONOTONIC, as an int64_t.
function system.now_ns()
  return clock_ns(1)
end

-- Processor time of this process, as an int64_t.
function system.cpu_ns()
  return clock_ns(2)
end

-- Resident memory of this process, from the kernel; and of it pages of mapped files and shared memory.
function system.resident_bytes()
  local file = assert(io.open("/proc/self/statm"))
  local _, resident, mapped = file:read("*n", "*n", "*n")
  file:close()
  return resident * PAGE_SIZE, mapped * PAGE_SIZE
end

-- Writes all of a text to a descriptor.
function system.write_all(fd, text)
  local at, left = ffi.cast("const char *", text), #text
  while left > 0 do
    local written = tonumber(C.write(fd, at, left))
    if written < 0 and ffi.errno() ~= INTERRUPTED then
      error("cannot write to descriptor " .. fd .. ": errno " .. ffi.errno())
    end
    written = math.max(written, 0)
    at, left = at + written, left - written
  end
end

-- The next lines of a descriptor, one per call, without their ends; nil at the end of the file.
function system.line_reader(fd)
  local size = 4096
  local buffer, pending = ffi.new("char[?]", size), ""
  return function()
    while true do
      local line, rest = pending:match("^(.-)\n(.*)$")
      if line then
        pending = rest
        return line
      end
      local got = tonumber(C.read(fd, buffer, size))
      if got > 0 then
        pending = pending .. ffi.string(buffer, got)
      elseif got == 0 or ffi.errno() ~= INTERRUPTED then
        return nil
      end
    end
  end
end

-- A file's content, mapped read-only for as long as this process lives, and its size.
function system.map_file(path)
  local fd = C.open(path, 0)
  if fd < 0 then
    error(path .. ": cannot be opened, errno " .. ffi.errno())
  end
  local bytes = tonumber(C.lseek(fd, 0, 2))
  local address = C.mmap(nil, bytes, 1, 2, fd, 0) -- PROT_READ, MAP_PRIVATE
  local problem = ffi.errno()
  C.close(fd)
  if ffi.cast("intptr_t", address) == -1 then
    error(path .. ": cannot be mapped, errno " .. problem)
  end
  return ffi.cast("const char *", address), bytes
end

-- Makes a folder, unless it is there.
function system.make_folder(path)
  if C.mkdir(path, 493) ~= 0 and ffi.errno() ~= EXISTS then -- 0755
    error(path .. ": cannot be made, errno " .. ffi.errno())
  end
end

-- Ends the process at once: a framework in an unknown state might hang in its destructors.
function system.exit_now(status)
  io.stdout:flush()
  io.stderr:flush()
  C._exit(status)
end

-- The paths of mapped files that contain `word`, each once, sorted.
function system.mapped_files(word)
  local seen, found = {}, {}
  for line in io.lines("/proc/self/maps") do
    local path = line:match("(/.*)$")
    if path and not seen[path] and path:find(word, 1, true) then
      seen[path] = true
      found[#found + 1] = path
    end
  end
  table.sort(found)
  return found
end

return system
