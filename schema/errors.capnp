@0xd0a5f6a1c3b7e201;
# The error codes of the protocol, as data: what each says about trying again and about a mutation.
#
# Codes travel as UInt16 (`Failure.code`), so that a newer worker can send one that an older
# coordinator does not know; it is then read as internalFailure, its number kept for the report.
# Numbers are never reused.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("muster::wire");

enum Retry {
  never @0;        # final: the same request fails again
  yes @1;          # exponential back-off with full jitter, honouring Failure.retryAfterMs, within the deadline
  fewTimes @2;     # as yes, at most three attempts
  afterReread @3;  # read the object again, then decide
}

enum Applied {
  notApplied @0;  # the mutation changed nothing
  unknown @1;     # it may have happened: Status, Read or the same idempotency key decide, before anything else
  settle @2;      # settled by idempotency key or ownership mark, never by failing
}

struct ErrorRow {
  code @0 :UInt16;     # as it travels in Failure.code
  name @1 :Text;       # as people and programs read it: events, API, reports
  retry @2 :Retry;
  applied @3 :Applied; # what a mutation that failed so has done
}

const errorTable :List(ErrorRow) = [
  (code = 1,  name = "NOT_FOUND",           retry = never,       applied = notApplied), # of a delete: done
  (code = 2,  name = "ALREADY_EXISTS",      retry = never,       applied = settle),
  (code = 3,  name = "INVALID_REQUEST",     retry = never,       applied = notApplied),
  (code = 4,  name = "UNSUPPORTED",         retry = never,       applied = notApplied),
  (code = 5,  name = "ACCESS_DENIED",       retry = never,       applied = notApplied),
  (code = 6,  name = "LIMIT",               retry = never,       applied = notApplied), # a quota, or a bound of this protocol
  (code = 7,  name = "THROTTLING",          retry = yes,         applied = notApplied),
  (code = 8,  name = "SERVICE_UNAVAILABLE", retry = yes,         applied = unknown),
  (code = 9,  name = "NOT_STABILIZED",      retry = afterReread, applied = unknown),
  (code = 10, name = "CONFLICT",            retry = afterReread, applied = notApplied),
  (code = 11, name = "INTERNAL_FAILURE",    retry = fewTimes,    applied = unknown),    # also: plugin code threw
  (code = 12, name = "NETWORK",             retry = yes,         applied = unknown),
  (code = 13, name = "TIMEOUT",             retry = yes,         applied = unknown),
  (code = 14, name = "CANCELLED",           retry = never,       applied = unknown),
  (code = 15, name = "TARGET_CHANGED",      retry = never,       applied = notApplied), # the system behind the target is another one
];
