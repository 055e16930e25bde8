-- Finds its book and its module by the path of the script, and prints debug text on standard error.
local folder = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/?.lua;" .. package.path
local kalah = require("kalah")
local lines = 0
for _ in assert(io.lines(folder .. "/book.txt")) do lines = lines + 1 end
io.stderr:write("a book of ", lines, " lines\n")

kalah.play(function(own)
  for node = 1, 500 do io.stderr:write("node ", node, ": ", table.concat(own, " "), "\n") end
  return kalah.best_hole(own)
end)
