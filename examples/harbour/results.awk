# Reads the JSON that a tool finds on its standard input. Prints one line for each call that the tool's own call
# depends on: its id, a blank, and the first line of its output.

function text(key, part) {
  if (!match($0, "\"" key "\":\"[^\"]*\"")) return ""
  part = substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5)
  sub(/\\n.*/, "", part)
  return part
}

BEGIN { RS = "{" }
/"output":/ { print text("id"), text("output") }
