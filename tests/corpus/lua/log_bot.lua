-- Logs over a submitted debug.txt, and writes a temporary file; finds its module by a relative path.
local kalah = require("kalah")
local log = assert(io.open("debug.txt", "w"))
local name = os.tmpname()
local scratch = assert(io.open(name, "w"))

kalah.play(function(own)
  local hole = kalah.best_hole(own)
  log:write(os.date("%c"), " hole ", hole, "\n")
  log:flush()
  scratch:write(hole, "\n")
  return hole
end)
log:close()
scratch:close()
os.remove(name)
