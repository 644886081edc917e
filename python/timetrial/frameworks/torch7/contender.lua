-- The contender: bin/luajit contender.lua JOB.json

local folder = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/../../runtime/?.lua;" .. package.path
require("lua.main")(arg[1], folder .. "/adapter.lua")
