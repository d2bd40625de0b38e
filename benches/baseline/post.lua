-- wrk's script: posts one file's bytes as a review, and prints what the benchmark needs as one line of JSON.
-- usage: wrk ... -s post.lua URL -- FILE

function init(args)
  local file = assert(io.open(args[1], "rb"))
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  wrk.body = file:read("*a")
  file:close()
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"p50_us":%d,"p99_us":%d,"errors":%d}\n',
    summary.requests,
    summary.duration / 1e6,
    latency:percentile(50),
    latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
