@0xb3f1c0de5a7e1101;
# Job: one piece of work, from a coordinator to a worker.
#
# Subjects: muster.job.<ns> (pool "default"), muster.job.<ns>.<pool>, queue group "workers";
#           muster.worker.<ns>.<w>.job for one worker. The message's reply subject,
#           muster.reply.<ns>.<c>.<token>, is where every JobReply about this dispatch goes.
# Body:     one message in the standard unpacked stream framing.
#
# What a worker does with it:
#   no free slot                      -> reply `busy` at once, forget the job; but see waitMs
#   fleet, namespace or pool not its own -> reply `result` with failure INVALID_REQUEST
#   result within 100 ms              -> reply `result`
#   otherwise                         -> reply `accepted` within 100 ms, name (id, token) in each heartbeat,
#                                        reply `result` when done
#   mutation                          -> reply `accepted`, then wait for Control.go with this token; act only if it
#                                        comes within leaseMs of the receipt of the job on the worker's own clock, read
#                                        right before acting. Make room for the result on disk before that: without
#                                        room reply `result` with failure THROTTLING (nothing was done; others of the
#                                        pool may). The result is kept and sent until it is acknowledged: reply.capnp
#
# Ids are subject tokens (no dots, spaces or wildcards), at most 64 bytes. JSON travels as UTF-8 text.
# Durations are milliseconds. Everything is since version 1 unless it says otherwise.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("muster::wire");

struct Job {
  fleet @0 :Text;       # id of the fleet's store; echoed in every reply. since 1
  id @1 :Text;          # the job; the same for all its attempts. since 1
  token @2 :Text;       # random mark of this dispatch; echoed in every reply. since 1
  attempt @3 :UInt16;   # 1.. ; counts dispatches that a worker took. since 1
  namespace @4 :Text;   # `PG`; [A-Za-z0-9][A-Za-z0-9_-]{0,63}. since 1
  pool @5 :Text;        # `default` unless the target says otherwise. since 1
  target @6 :Target;    # since 1
  type @7 :Text;        # `PG::Table`; empty for `inspect`. since 1
  manifest @8 :Text;    # hash of the manifest that the run or command uses. since 1
  leaseMs @9 :UInt32;   # how long after its receipt a mutation may still be begun. since 1
  deadlineMs @10 :UInt32; # time left at dispatch until the job is given up. since 1
  priority @11 :Priority; # for information; the coordinator has already ordered. since 1
  operation :union {
    list @12 :ListJob;
    read @13 :ReadJob;
    create @14 :CreateJob;
    update @15 :UpdateJob;
    delete @16 :DeleteJob;
    status @17 :StatusJob;
    inspect @18 :InspectJob;
    call @19 :CallJob;
  }
  waitMs @20 :UInt16;
  # How long it may wait at the worker for a slot; 0: not at all. Sent only to workers that announce the feature
  # `waiting-room`, and only with what changes nothing. Who waits so long in vain is answered with `busy`; a worker has
  # as many places to wait as slots. Heartbeats name what runs, not what waits.
}

enum Priority {
  discovery @0;
  drift @1;
  status @2;
  command @3;  # what a user waits for
}

struct Target {
  id @0 :Text;     # stable, survives renaming
  name @1 :Text;   # unique in the fleet
  config @2 :Document;
}

struct Document {
  # JSON with holes: each secret stands as null in `json` and as a reference here. A worker resolves the
  # references where it runs, from names and directories that its operator allows; it never scans text.
  json @0 :Text;
  secrets @1 :List(Secret);
}

struct Secret {
  pointer @0 :Text;          # RFC 6901 pointer into Document.json
  parts @1 :List(SecretPart); # concatenated they make the string value
}

struct SecretPart {
  union {
    literal @0 :Text;
    env @1 :Text;   # name of an environment variable of the worker
    file @2 :Text;  # absolute path; its content less one trailing newline
    secret @3 :Text; # name of a file in the worker's secret directory
  }
}

struct ListJob {
  # A page of the ids of `Job.type`. Plugins keep no state between pages: any worker can serve the next one.
  parent @0 :Parent;     # unset when listing at the root
  pageToken @1 :Text;    # empty for the first page; else what the page before gave; at most 16 KiB
  pageSize @2 :UInt32;   # items wanted at most; fewer are fine, also none with a nextPageToken
  pages @3 :UInt16;      # pages of the plugin that the answer may hold as one, while they come quickly and their items
                         # are not more than pageSize; 0 and 1: one
}

struct Parent {
  type @0 :Text;
  nativeId @1 :Text;
  parameters @2 :Text;   # JSON object: the parent's properties that TypeDescriptor.parentParameters names
}

struct ReadJob {
  nativeIds @0 :List(Text);  # 1..1000 ids of Job.type; the result answers each, in this order
}

struct CreateJob {
  idempotencyKey @0 :Text;   # the same for every attempt; one key never makes two objects
  properties @1 :Document;   # desired
  parent @2 :Parent;         # unset for a root type
}

struct UpdateJob {
  idempotencyKey @0 :Text;
  nativeId @1 :Text;
  prior @2 :Text;            # JSON, as last read
  desired @3 :Document;
  patch @4 :Text;            # RFC 6902, prior -> desired; has null where a secret of `desired` belongs
  precondition @5 :Precondition;
}

struct DeleteJob {
  idempotencyKey @0 :Text;
  nativeId @1 :Text;
  precondition @2 :Precondition;
}

struct Precondition {
  # Checked as close to the provider as can be; CONFLICT when it does not hold.
  uid @0 :Text;        # empty: not checked
  stateHash @1 :Text;  # hex XXH3-128 of the canonical JSON of the prior properties; empty: not checked
}

struct StatusJob {
  requestId @0 :Text;  # what an IN_PROGRESS result gave
  nativeId @1 :Text;   # empty where it is not known yet
}

struct InspectJob {
  # At the start of each run, per target: which system is this, and which filters hold for it now?
}

struct CallJob {
  # Computations and functions: none of these is a CRUD operation.
  kind @0 :CallKind;
  function @1 :Text;        # name of the function, transform, selector or action
  input @2 :Document;       # its spec and context
  idempotencyKey @3 :Text;  # set for kinds that act: invoke, act, recover
}

enum CallKind {
  check @0;       # validate and normalise inputs -> normalised properties
  diff @1;        # prior, desired -> patch, replace or not
  invoke @2;      # a provider function
  transform @3;   # (spec, context) -> object; pure and deterministic
  contribute @4;  # a transform with a collector
  select @5;      # selector spec -> list of objects
  act @6;         # an action on selected objects
  recover @7;     # the end of an action
}
