@0xb3f1c0de5a7e1102;
# JobReply: what a worker says about one dispatch of a job.
#
# Subjects: muster.reply.<ns>.<c>.<token>, the job's reply subject (worker -> coordinator);
#           muster.result.<ns> as a request (queue group "coordinators"), for a mutation's result when its
#           coordinator does not answer; the answer is a ResultAck.
# Body:     one message in the standard unpacked stream framing. A reply that is larger than the server's payload
#           limit is encoded once, cut into numbered parts, and each part sent as a JobReply of its own; the parts'
#           bytes in order are the encoded reply. A missing part is a lost reply.
#
# The result of a mutation that was begun (whatever came of it after Control.go, failures too) is acknowledged:
#   worker       has it on disk, then sends it to the job's reply subject, its inbox as the message's reply subject
#                (in parts: of the last one)
#   coordinator  answers a ResultAck to the reply subject of the message, once what it says is durable. A message
#                without one wants no answer
#   worker       without a final verdict within 2 s: the same bytes as a request to muster.result.<ns>, again after 2,
#                4, 8, 16 s and then each 30 s; at once after a reconnect and when a coordinator accepts it; after its
#                end by another worker of the pool on that machine. `worker` and `fleet` stay those of the dispatch
# Everything else is sent once: reads, status, claims given back (nothing was done), the TIMEOUT of a mutation that
# ignores its stop; what that comes to after all is sent like any result of a mutation, under the same token.
# Members of queue group "coordinators" get parts at random: with several coordinators the server's payload limit must
# hold a whole result of a mutation, 320 KiB.
#
# Everything is since version 1 unless it says otherwise.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("muster::wire");

using import "manifest.capnp".MatchFilter;

struct JobReply {
  fleet @0 :Text;    # as in the job. since 1
  jobId @1 :Text;    # as in the job; empty in answers to Control.sendManifest. since 1
  token @2 :Text;    # as in the job, and the last token of the reply subject in every case. since 1
  worker @3 :Text;   # who answers. since 1
  attempt @4 :UInt16; # as in the job. since 1
  calls @5 :UInt32;  # provider calls that this reply cost (pages, status, retries too). A mutation that failed with
                     # THROTTLING and 0: not the target has too much to do, this worker cannot keep a result. since 1
  body :union {
    accepted @6 :Void;    # taken; renewed by heartbeats from here on
    busy @7 :Void;        # no free slot, or draining: not taken
    result @8 :JobResult; # the end of this attempt
    part @9 :Part;
    manifest @10 :Data;   # the encoded Manifest, answer to Control.sendManifest
  }
}

struct Part {
  index @0 :UInt32;  # 0..count-1
  count @1 :UInt32;  # 2..4096
  data @2 :Data;
}

struct JobResult {
  union {
    failure @0 :Failure;
    list @1 :ListResult;
    read @2 :ReadResult;
    mutation @3 :MutationResult;  # of create, update, delete, status
    inspect @4 :InspectResult;
    call @5 :CallResult;
  }
}

struct Failure {
  code @0 :UInt16;          # errors.capnp
  message @1 :Text;         # for people; at most 4 KiB, cut beyond; no secret
  retryAfterMs @2 :UInt32;  # hint; 0 = none
}

struct Item {
  nativeId @0 :Text;    # 1 byte .. 16 KiB, UTF-8
  uid @1 :Text;         # the system's own identity of the object, survives renaming; at most 16 KiB; empty = none
  properties @2 :Text;  # JSON object, at most 256 KiB; empty = not given. Keys sorted and no white space is canonical
                        # and saves the coordinator a parse
}

struct ListResult {
  items @0 :List(Item);
  nextPageToken @1 :Text;  # empty: that was the last page. A token that was given before in the same listing
                           # ends it with an error
  problems @2 :List(Problem); # what could not be listed, at most 100,000; each makes the listing incomplete
  skipped @3 :UInt32;      # objects that exist and are not listed on purpose (special files, ...)
}

struct Problem {
  nativeId @0 :Text;  # empty: of the listing as a whole
  failure @1 :Failure;
}

struct ReadResult {
  items @0 :List(ReadItem);  # one for each id of the job, in its order
}

struct ReadItem {
  union {
    found @0 :Item;
    failure @1 :Failure;  # NOT_FOUND is an answer like any other
  }
}

struct MutationResult {
  status @0 :MutationStatus;
  requestId @1 :Text;       # inProgress, pending: what Status is asked with; at most 16 KiB
  nativeId @2 :Text;        # set on success; that of the job, where the job names one. Holds no secret: a change whose
                            # id would is answered with INTERNAL_FAILURE, which says that it was made
  uid @3 :Text;
  properties @4 :Text;      # JSON object as read after the change, at most 256 KiB; empty = not given, or larger
  retryAfterMs @5 :UInt32;  # when to ask for the status; 0 = the coordinator chooses
}

enum MutationStatus {
  success @0;
  inProgress @1;
  pending @2;  # accepted by the provider, not begun
}

struct InspectResult {
  system @0 :Text;                 # stable identity of the system behind the target, at most 4 KiB; empty = the plugin
                                   # can't tell
  filters @1 :List(MatchFilter);   # hold for this target until the next inspection; at most 4096;
                                   # bounded together with those of the manifest and of the configuration
  types @2 :List(Text);            # the types of the manifest that this target has, at most 4096; empty: all of them
}

struct CallResult {
  output @0 :Text;     # JSON
  userFault @1 :Bool;  # output is an error that the user's input caused
}

struct ResultAck {
  # Answer to a mutation's result, from either subject. All but `later` are final: the worker forgets the result. It may
  # come again, or twice. It names the job and the token of the result: another one's changes nothing.
  jobId @0 :Text;
  token @1 :Text;
  verdict @2 :Verdict;
  reason @3 :Text;  # of `refused`
}

enum Verdict {
  committed @0;   # recorded by this message or an earlier one
  superseded @1;  # another attempt's result stands; this one is kept as evidence
  refused @2;     # not this fleet's, not decodable, no such job
  later @3;       # ask again: the store is busy
}
